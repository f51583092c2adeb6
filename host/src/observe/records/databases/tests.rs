//! Whose conversation is whose, over real databases.
