//! The top folder of the project that a folder belongs to, as git sees it.
//!
//! Looked up in the file system rather than asked of git: it need not be installed, it refuses repositories of other
//! users, and it would run what their configuration tells it to.

use crate::config::Worktrees;
use crate::files::read_small_text;
use std::fs;
use std::path::{Path, PathBuf};

/// A `.git` file is one line; what is longer is something else.
const LONGEST_GIT_FILE: u64 = 8 * 1024;

/// The top folder of the repository that holds `folder`; the folder itself where none does.
///
/// A worktree belongs to its main repository unless worktrees are sessions apart. A submodule is a project of its own.
/// A bare repository with worktrees is their project: `/srv/shop` for `/srv/shop/.bare`, `/srv/shop.git` for itself.
/// Links are followed. A folder that has been deleted belongs where it was.
pub fn top_folder(folder: &Path, worktrees: Worktrees) -> PathBuf {
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    folder.ancestors().find_map(|folder| top_here(folder, worktrees)).unwrap_or(folder)
}

/// The project if `folder` is a top folder, or is itself what a `.git` folder is elsewhere.
fn top_here(folder: &Path, worktrees: Worktrees) -> Option<PathBuf> {
    let git = folder.join(".git");
    match fs::metadata(&git) {
        // An empty folder of that name is none to git either: it looks further up.
        Ok(found) if found.is_dir() && is_git_folder(&git) => Some(folder.to_owned()),
        Ok(found) if found.is_file() && found.len() <= LONGEST_GIT_FILE => {
            let main = match worktrees {
                Worktrees::Together => main_repository(folder, &git),
                Worktrees::Apart => None,
            };
            Some(main.unwrap_or_else(|| folder.to_owned()))
        }
        _ if is_git_folder(folder) => Some(project_of(folder).unwrap_or_else(|| folder.to_owned())),
        _ => None,
    }
}

/// The project whose worktree `folder` is: its `.git` is a file that says `gitdir: …/worktrees/NAME`. `None`: it is
/// not a worktree, or its repository is gone.
fn main_repository(folder: &Path, git: &Path) -> Option<PathBuf> {
    let text = read_small_text(git, LONGEST_GIT_FILE).ok()?;
    let target = fs::canonicalize(folder.join(text.strip_prefix("gitdir:")?.trim())).ok()?;
    let worktrees = target.parent()?;
    if worktrees.file_name()? != "worktrees" {
        return None;
    }
    project_of(worktrees.parent()?)
}

/// The project that a git folder belongs to: the folder around a hidden one (`.git`, `.bare`), else it is a bare
/// repository and the project itself. `None` for a submodule's, which lies within another project's `.git`.
fn project_of(git_folder: &Path) -> Option<PathBuf> {
    let parent = git_folder.parent()?;
    if git_folder.file_name()?.as_encoded_bytes().starts_with(b".") {
        return Some(parent.to_owned());
    }
    let within_another = parent.components().any(|part| part.as_os_str() == ".git");
    (!within_another).then(|| git_folder.to_owned())
}

/// Whether git would take the folder for a repository's inside.
fn is_git_folder(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}

#[cfg(test)]
mod tests {
    use super::Worktrees::{Apart, Together};
    use super::*;

    /// A folder for one test.
    struct Disk {
        top: PathBuf,
        _removed_when_dropped: tempfile::TempDir,
    }

    impl Disk {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            Self { top: fs::canonicalize(folder.path()).unwrap(), _removed_when_dropped: folder }
        }

        fn folder(&self, path: &str) -> PathBuf {
            let path = self.top.join(path);
            fs::create_dir_all(&path).unwrap();
            path
        }

        fn git_file(&self, folder: &str, gitdir: &str) -> PathBuf {
            let folder = self.folder(folder);
            fs::write(folder.join(".git"), format!("gitdir: {gitdir}\n")).unwrap();
            folder
        }

        fn git_folder(&self, path: &str) {
            self.folder(&format!("{path}/objects"));
            self.folder(&format!("{path}/refs"));
            fs::write(self.top.join(path).join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
    }

    #[test]
    fn the_top_is_where_git_begins() {
        let disk = Disk::new();
        disk.git_folder("shop/.git");
        let deep = disk.folder("shop/src/deep");
        assert_eq!(top_folder(&deep, Together), disk.top.join("shop"));
        assert_eq!(top_folder(&disk.top.join("shop"), Together), disk.top.join("shop"));
        let inside = disk.top.join("shop/.git");
        assert_eq!(top_folder(&inside, Together), disk.top.join("shop"));
    }

    #[test]
    fn without_a_repository_the_folder_stands_for_itself() {
        let disk = Disk::new();
        let folder = disk.folder("notes/2026");
        assert_eq!(top_folder(&folder, Together), folder);
        assert_eq!(top_folder(Path::new("/"), Together), Path::new("/"));
    }

    #[test]
    fn worktrees_work_on_one_project_unless_they_are_set_apart() {
        let disk = Disk::new();
        disk.git_folder("shop/.git");
        disk.folder("shop/.git/worktrees/fix");
        let absolute = disk.top.join("shop/.git/worktrees/fix");
        let beside = disk.git_file("shop-fix", absolute.to_str().unwrap());
        assert_eq!(top_folder(&beside, Together), disk.top.join("shop"));
        assert_eq!(top_folder(&beside, Apart), beside);
        let relative = disk.git_file("shop-fix2", "../shop/.git/worktrees/fix");
        assert_eq!(top_folder(&relative, Together), disk.top.join("shop"));
        let orphan = disk.git_file("shop-fix3", "/nowhere/.git/worktrees/fix");
        assert_eq!(top_folder(&orphan, Together), orphan);
    }

    #[test]
    fn a_bare_repository_is_the_project_of_its_worktrees() {
        let disk = Disk::new();
        disk.git_folder("shop/.bare");
        disk.folder("shop/.bare/worktrees/main");
        let here = disk.git_file("shop", "./.bare");
        let main = disk.git_file("shop/main", "../.bare/worktrees/main");
        assert_eq!(top_folder(&main, Together), here);
        assert_eq!(top_folder(&here, Together), here);

        disk.git_folder("store.git");
        disk.folder("store.git/worktrees/main");
        let checked_out = disk.git_file("store-main", "../store.git/worktrees/main");
        assert_eq!(top_folder(&checked_out, Together), disk.top.join("store.git"));
        assert_eq!(top_folder(&disk.top.join("store.git/refs"), Together), disk.top.join("store.git"));
    }

    #[test]
    fn a_submodule_is_a_project_of_its_own() {
        let disk = Disk::new();
        disk.git_folder("shop/.git");
        disk.folder("shop/.git/modules/lib/worktrees/fix");
        let module = disk.git_file("shop/lib", "../.git/modules/lib");
        assert_eq!(top_folder(&module, Together), module);
        let worktree = disk.git_file("lib-fix", "../shop/.git/modules/lib/worktrees/fix");
        assert_eq!(top_folder(&worktree, Together), worktree);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_leads_to_the_project_it_points_to() {
        let disk = Disk::new();
        disk.git_folder("shop/.git");
        disk.folder("shop/src");
        std::os::unix::fs::symlink(disk.top.join("shop/src"), disk.top.join("link")).unwrap();
        assert_eq!(top_folder(&disk.top.join("link"), Together), disk.top.join("shop"));
    }

    #[test]
    fn a_deleted_folder_belongs_where_it_was() {
        let disk = Disk::new();
        disk.git_folder("shop/.git");
        assert_eq!(top_folder(&disk.top.join("shop/gone/deeper"), Together), disk.top.join("shop"));
        assert_eq!(top_folder(&disk.top.join("gone"), Together), disk.top.join("gone"));
    }

    #[test]
    fn what_is_called_dot_git_and_is_none_makes_no_project_of_others() {
        let disk = Disk::new();
        let nonsense = disk.git_file("a", "");
        assert_eq!(top_folder(&nonsense, Together), nonsense);
        let huge = disk.folder("b");
        fs::write(huge.join(".git"), vec![b'x'; 100_000]).unwrap();
        assert_eq!(top_folder(&huge, Together), huge);
        disk.git_folder("shop/.git");
        disk.folder("shop/empty/.git");
        let below = disk.folder("shop/empty/src");
        assert_eq!(top_folder(&below, Together), disk.top.join("shop"));
        #[cfg(unix)]
        {
            let piped = disk.folder("shop/piped");
            crate::files::make_pipe(&piped.join(".git"));
            assert_eq!(top_folder(&piped, Together), disk.top.join("shop"));
        }
    }
}
