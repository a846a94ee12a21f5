//! What cannot be seen from inside one process.

mod index_faults;
