/* The forms of `stave export`, one line each, in the order of the help: SV_EXPORT_FORM(NAME)
 * declares sv_export_NAME, which the form's own file defines, and puts it into
 * sv_export_forms[]. */
/* clang-format off */
SV_EXPORT_FORM(sqlite)
SV_EXPORT_FORM(csv_dir)
SV_EXPORT_FORM(json)
SV_EXPORT_FORM(folded)
SV_EXPORT_FORM(parquet)
SV_EXPORT_FORM(perfetto_tar)
SV_EXPORT_FORM(clickhouse)
SV_EXPORT_FORM(otlp)
