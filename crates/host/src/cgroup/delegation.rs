//! Which part of the tree this process may make groups in.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, getxattr, statfs};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::group;

/// Where the tree is mounted.
const ROOT: &str = "/sys/fs/cgroup";
/// Names the parent, where this process cannot find it by itself.
const VARIABLE: &str = "PYDENO_CGROUP";
/// The file system of the tree, from the kernel's `magic.h`.
const CGROUP2_MAGIC: u64 = 0x6367_7270;
/// What the service manager marks the groups with that it delegates, as root and as a user.
const MARKS: [&str; 2] = ["trusted.delegate", "user.delegate"];

/// Whether workers have groups.
#[derive(Debug)]
pub(crate) enum Delegation {
    /// They are made in this directory.
    Parent(PathBuf),
    /// There is none to make them in, for this reason.
    None(String),
    /// The one that was named cannot be used. Nothing may start as if nobody had asked for it.
    Unusable(String),
}

impl Delegation {
    /// Looks for the parent of this process's workers.
    pub(crate) fn find() -> Self {
        match std::env::var_os(VARIABLE) {
            Some(named) if !named.is_empty() => match usable(Path::new(&named)) {
                Ok(()) => Self::Parent(named.into()),
                Err(reason) => Self::Unusable(format!("{VARIABLE}={}: {reason}", named.display())),
            },
            _ => by_own_group(&fs::read_to_string("/proc/self/cgroup").unwrap_or_default(), Path::new(ROOT)),
        }
    }

    /// Removes what processes that ended without doing so have left.
    pub(crate) fn tidy(self) -> Self {
        if let Self::Parent(parent) = &self {
            group::remove_stale(parent);
        }
        self
    }
}

/// The group around the process's own, which holds no process, if it is delegated.
fn by_own_group(groups: &str, root: &Path) -> Delegation {
    let Some(own) = own_group(groups, root) else {
        return Delegation::None("there is no cgroup v2".to_owned());
    };
    let parent = own.parent().filter(|parent| own != root && is_delegated(parent));
    if let Some(parent) = parent {
        return match usable(parent) {
            Ok(()) => Delegation::Parent(parent.to_owned()),
            Err(reason) => {
                Delegation::None(format!("the delegated cgroup v2 {}: {reason}", parent.display()))
            }
        };
    }
    Delegation::None(if own != root && is_delegated(&own) {
        format!(
            "this process is itself in the cgroup v2 that it was delegated, which can then hold no groups with limits: \
             start it in one beneath (systemd: DelegateSubgroup=) or name another with {VARIABLE}"
        )
    } else {
        "no cgroup v2 is delegated to this process".to_owned()
    })
}

/// The directory of the process's group in the unified hierarchy, from `/proc/self/cgroup`.
fn own_group(groups: &str, root: &Path) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    // Without a trailing slash, so that the parent is the group around it.
    let group = if path.is_empty() { root.to_owned() } else { root.join(path) };
    // What it lists is up to the group around it, which may enable more.
    group.join("cgroup.controllers").exists().then_some(group)
}

/// Whether the manager of the tree has left a group to this user. Root may write to every group, and the managers of
/// others would not expect it: there it is the mark that counts.
fn is_delegated(group: &Path) -> bool {
    let writable = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    let is_marked = || MARKS.iter().any(|mark| matches!(getxattr(group, *mark, &mut [0; 1]), Ok(1)));
    has(group, "cgroup.controllers", "memory")
        && writable(group)
        && writable(&group.join("cgroup.subtree_control"))
        && writable(&group.join("cgroup.procs"))
        && (!geteuid().is_root() || is_marked())
}

/// Makes sure that groups in a directory can have limits.
fn usable(parent: &Path) -> Result<(), String> {
    if !parent.is_absolute() {
        return Err("it is no absolute path".to_owned());
    }
    let file_system = statfs(parent).map_err(|error| error.to_string())?;
    if file_system.f_type as u64 != CGROUP2_MAGIC {
        return Err("it is no directory of a cgroup v2 file system".to_owned());
    }
    if !has(parent, "cgroup.controllers", "memory") {
        return Err("it has no memory controller; enable it in the group around it".to_owned());
    }
    for (controller, is_needed) in [("memory", true), ("pids", false)] {
        if has(parent, "cgroup.subtree_control", controller) || !has(parent, "cgroup.controllers", controller)
        {
            continue;
        }
        match fs::write(parent.join("cgroup.subtree_control"), format!("+{controller}")) {
            Err(error) if is_needed => return Err(refused(controller, &error)),
            // The memory limit is what a group is for; tasks are counted by other means, too.
            Err(_) | Ok(()) => {}
        }
    }
    Ok(())
}

fn refused(controller: &str, error: &io::Error) -> String {
    let hint = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::BUSY) => "; processes are in it: name a group that has none",
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => "; have it delegated to this user",
        _ => "",
    };
    format!("the {controller} controller cannot be enabled for groups in it: {error}{hint}")
}

/// Whether a file of a group lists a controller.
fn has(group: &Path, file: &str, controller: &str) -> bool {
    fs::read_to_string(group.join(file))
        .is_ok_and(|listed| listed.split_ascii_whitespace().any(|name| name == controller))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with the files of a group; no file system of groups.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Self {
            let root = std::env::temp_dir().join(format!("pydeno-cgroup-{name}-{}", std::process::id()));
            fs::create_dir_all(&root).unwrap();
            Self(root)
        }

        fn add(&self, path: &str, controllers: &str) -> PathBuf {
            let group = self.0.join(path);
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("cgroup.controllers"), controllers).unwrap();
            fs::write(group.join("cgroup.subtree_control"), "").unwrap();
            fs::write(group.join("cgroup.procs"), "").unwrap();
            group
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    fn reason(delegation: Delegation) -> String {
        match delegation {
            Delegation::None(reason) | Delegation::Unusable(reason) => reason,
            Delegation::Parent(parent) => panic!("{} was taken for a parent", parent.display()),
        }
    }

    #[test]
    fn the_unified_hierarchy_is_told_from_the_old_ones() {
        let tree = Tree::new("own");
        let group = tree.add("user.slice/app", "cpu memory pids\n");
        assert_eq!(own_group("9:name=systemd:/\n0::/user.slice/app\n", &tree.0), Some(group));
        assert_eq!(own_group("9:name=systemd:/\n4:memory:/a\n", &tree.0), None);
        assert_eq!(own_group("0::/elsewhere\n", &tree.0), None, "without controllers it is no group");
        assert!(reason(by_own_group("4:memory:/a\n", &tree.0)).contains("there is no cgroup v2"));
    }

    #[test]
    fn a_directory_that_is_no_group_is_no_parent_though_its_files_look_right() {
        let tree = Tree::new("parent");
        let parent = tree.add("service", "memory pids\n");
        tree.add("service/host", "memory pids\n");
        assert_eq!(usable(&parent), Err("it is no directory of a cgroup v2 file system".to_owned()));
        assert_eq!(usable(Path::new("service")), Err("it is no absolute path".to_owned()));
        assert!(usable(&tree.0.join("gone")).unwrap_err().contains("No such file"));
        // A user who is not root is taken at the word of the permissions, and then finds the same.
        assert!(!matches!(by_own_group("0::/service/host\n", &tree.0), Delegation::Parent(_)));
    }

    #[test]
    fn the_root_of_the_tree_has_no_parent() {
        let tree = Tree::new("root");
        tree.add("", "memory pids\n");
        assert!(reason(by_own_group("0::/\n", &tree.0)).contains("no cgroup v2 is delegated"));
    }
}
