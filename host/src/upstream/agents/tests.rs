//! What is taken of answers, and what becomes of it.
