//! Tests against published data sets, which live outside the repository.

mod public_suffix;
