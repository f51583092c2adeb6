//! Recognising agents among processes.
