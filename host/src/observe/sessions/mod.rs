//! Where agents work: the project's top folder, the terminal, and whose they are.

mod owner;
mod places;
mod repository;
mod terminal;

pub use owner::{Owners, is_user};
pub use places::Places;
pub use repository::top_folder;
pub use terminal::terminal_of;
