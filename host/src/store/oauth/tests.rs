//! What the authorization server keeps, as several processes use it.
