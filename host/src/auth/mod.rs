//! Who may: grants, the tokens that show them, and ending them. It knows no transport: a surface takes what a request
//! carries to the [`Gate`], and gets a [`Principal`] or the reason why not.
//!
//! Whether a grant holds has three values: it is alive, it has ended, or it cannot be told ([`Denied::Unavailable`]). Nothing
//! is kept that could outlive a revocation: each request is looked up, and who is still inside when a grant ends is told.

mod bucket;
mod gate;
mod grants;
mod issuer;
pub mod oauth;
mod remote;
mod scope;
mod token;
mod trouble;
mod view;
mod watch;

pub use bucket::Bucket;
pub use gate::{Admitted, Denied, Gate, Principal};
pub use grants::{GrantError, NewToken, create_token, list, parse_name, revoke, revoke_token};
pub use issuer::Issuers;
pub use remote::{Document, Fetcher, Reach, RemoteError};
pub use scope::{Scope, Scopes, UnknownScope};
pub use token::{Secret, Token};
pub use view::{GrantRow, GrantState, Grants};
