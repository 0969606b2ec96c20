//! Finds libstave and libstave-file: the folder in STAVE_LIB_DIR, else what pkg-config says of `stave`, else the system's folders.
use std::process::Command;

fn folders_by_pkg_config() -> Vec<String> {
    let said = Command::new("pkg-config")
        .args(["--libs-only-L", "stave"])
        .output();
    let text = match said {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        _ => String::new(),
    };
    text.split_whitespace()
        .filter_map(|word| word.strip_prefix("-L"))
        .map(str::to_owned)
        .collect()
}

fn main() {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    if std::env::var_os("CARGO_FEATURE_SERDE").is_some() && !manifest.ends_with("/serde") {
        panic!("the feature serde has a manifest of its own: stave = {{ path = \"{manifest}/serde\" }}");
    }
    println!("cargo:rerun-if-env-changed=STAVE_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    let folders = match std::env::var("STAVE_LIB_DIR") {
        Ok(folder) if !folder.is_empty() => vec![folder],
        _ => folders_by_pkg_config(),
    };
    for folder in folders {
        println!("cargo:rustc-link-search=native={folder}");
        // Tests and programs of this package; others link as they are used to, or set LD_LIBRARY_PATH.
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
