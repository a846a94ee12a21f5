//! The wheel: `arose`, `arose-corpus` and `arose-dedup` for Python.
//!
//! Nothing is computed here. Texts are passed in as Python strings or as any Arrow string array,
//! tables as any Arrow table, and results are returned as Arrow tables, without copying in either
//! direction. The Arrow PyCapsule interface makes this work with pyarrow, polars, pandas and
//! others. The interpreter lock is released while Rust works, Ctrl-C stops it, and errors have the
//! messages of the library.
//!
//! The module is `arose._arose`; the package around it (`python/arose`) has the signatures and
//! their documentation.
#![forbid(unsafe_code)]

mod compare;
mod dedup;
mod error;
mod extract;
mod index;
mod options;
mod passages;
mod read;
mod results;
mod rows;
mod search;
mod shown;
mod sketcher;
mod spill;
mod step;
mod table;
mod text;
mod watch;

use pyo3::prelude::*;

/// Runs the command line and returns the exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| arose_cli::run(arguments))
}

#[pymodule]
fn _arose(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("DEFAULT_POLICY", arose::rule::Criterion::DEFAULT.name())?;
    module.add("MAX_REPAIRS", arose_dedup::shuffle::MAX_REPAIRS)?;
    module.add(
        "KINDS",
        std::collections::BTreeMap::from(arose_dedup::shuffle::kind::ALL),
    )?;
    module.add("AroseError", py.get_type::<error::AroseError>())?;
    module.add("SettingError", py.get_type::<error::SettingError>())?;
    module.add("InputError", py.get_type::<error::InputError>())?;
    module.add("InputLost", py.get_type::<error::InputLost>())?;
    module.add_class::<compare::Comparison>()?;
    module.add_class::<extract::Page>()?;
    module.add_class::<index::Index>()?;
    module.add_class::<index::Match>()?;
    module.add_class::<passages::Rows>()?;
    module.add_class::<read::Reader>()?;
    module.add_class::<sketcher::SketchReader>()?;
    module.add_class::<sketcher::Sketcher>()?;
    module.add_class::<spill::Spill>()?;
    module.add_class::<step::Chunks>()?;
    module.add_class::<step::Worker>()?;
    module.add_class::<table::Table>()?;
    module.add_function(wrap_pyfunction!(compare::compare, module)?)?;
    module.add_function(wrap_pyfunction!(extract::extract, module)?)?;
    module.add_function(wrap_pyfunction!(read::read, module)?)?;
    module.add_function(wrap_pyfunction!(read::read_table, module)?)?;
    module.add_function(wrap_pyfunction!(dedup::dedup, module)?)?;
    module.add_function(wrap_pyfunction!(dedup::dedup_table, module)?)?;
    module.add_function(wrap_pyfunction!(passages::passages, module)?)?;
    module.add_function(wrap_pyfunction!(passages::kept_texts, module)?)?;
    module.add_function(wrap_pyfunction!(search::search, module)?)?;
    module.add_function(wrap_pyfunction!(search::crawl_status, module)?)?;
    module.add_function(wrap_pyfunction!(rows::clusters, module)?)?;
    module.add_function(wrap_pyfunction!(rows::documents_of, module)?)?;
    module.add_function(wrap_pyfunction!(rows::first_rows, module)?)?;
    module.add_function(wrap_pyfunction!(rows::mask, module)?)?;
    module.add_function(wrap_pyfunction!(rows::filter, module)?)?;
    module.add_function(wrap_pyfunction!(shown::texts, module)?)?;
    module.add_function(wrap_pyfunction!(shown::differences, module)?)?;
    module.add_function(wrap_pyfunction!(shown::write_report, module)?)?;
    module.add_function(wrap_pyfunction!(spill::usual_names, module)?)?;
    module.add_function(wrap_pyfunction!(main, module)?)?;
    module.add_function(wrap_pyfunction!(dedup::check, module)?)?;
    module.add_function(wrap_pyfunction!(dedup::promise, module)?)?;
    module.add_function(wrap_pyfunction!(step::cut_input, module)?)?;
    module.add_function(wrap_pyfunction!(step::read_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(step::read_part, module)?)?;
    module.add_function(wrap_pyfunction!(step::settings, module)?)?;
    module.add_function(wrap_pyfunction!(step::schemas, module)?)?;
    module.add_function(wrap_pyfunction!(step::expand_inputs, module)?)?;
    module.add_function(wrap_pyfunction!(step::copy_kept, module)?)?;
    Ok(())
}
