"""The APIs of other tracing libraries on top of Stave, one module each. A program that uses one of them changes its import line. See docs/porting.md."""
