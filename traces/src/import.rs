//! Importers: from the files that people have to rows.
