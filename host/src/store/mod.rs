//! What is kept on disk: the registry of declared agents and the audit log.
