//! The memory available to a process: that of the machine, or less in a container.
//!
//! A control group may limit memory far below that of the machine, and a process that exceeds the
//! limit is killed. Limits are set in directories of `/sys/fs/cgroup`: `memory.max` in version 2,
//! `memory.limit_in_bytes` in version 1. The limits of all parent groups apply too.

use std::fs;
use std::path::Path;

/// Minimum memory of a run.
const MIN: u64 = 64 << 20;
/// Assumed memory if the operating system does not report it.
const UNKNOWN: u64 = 8 << 30;

/// Returns half of the memory that this process may use: the default of a run.
#[must_use]
pub fn default_memory() -> u64 {
    (available(Path::new("/")).unwrap_or(UNKNOWN) / 2).max(MIN)
}

/// Returns the memory of the machine or the lowest limit, in the file system at `root`.
fn available(root: &Path) -> Option<u64> {
    let limits = limits(root).into_iter();
    machine(root).into_iter().chain(limits).min()
}

fn machine(root: &Path) -> Option<u64> {
    let info = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let line = info.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// Returns the limits of the groups of this process and of their parents.
fn limits(root: &Path) -> Vec<u64> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (mount, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            all if all.split(',').any(|one| one == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        // In a container, the group may have its outside name, and its directory is the mount
        // point.
        for group in Path::new(group.trim_start_matches('/')).ancestors() {
            let path = root.join(mount).join(group).join(file);
            let limit = fs::read_to_string(path);
            limits.extend(
                limit
                    .iter()
                    .filter_map(|text| text.trim().parse::<u64>().ok()),
            );
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: Option<u64>) {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        assert_eq!(available(root.path()), expected);
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal:  16777216 kB\n");

    #[test]
    fn without_a_limit_it_is_the_machine() {
        check(&[MACHINE], Some(16 * GIB));
        let group = ("proc/self/cgroup", "0::/user.slice\n");
        let max = ("sys/fs/cgroup/user.slice/memory.max", "max\n");
        check(&[MACHINE, group, max], Some(16 * GIB));
        check(&[], None);
    }

    #[test]
    fn version_2_limits_count_from_every_level() {
        let group = ("proc/self/cgroup", "0::/a/b\n");
        let inner = ("sys/fs/cgroup/a/b/memory.max", "4294967296\n");
        let outer = ("sys/fs/cgroup/a/memory.max", "2147483648\n");
        check(&[MACHINE, group, inner], Some(4 * GIB));
        check(&[MACHINE, group, inner, outer], Some(2 * GIB));
        let mounted = ("sys/fs/cgroup/memory.max", "1073741824\n");
        check(
            &[MACHINE, ("proc/self/cgroup", "0::/\n"), mounted],
            Some(GIB),
        );
    }

    #[test]
    fn version_1_limits_count_too() {
        let groups = (
            "proc/self/cgroup",
            "9:cpu,cpuacct:/x\n5:memory:/docker/0af\n1:name=systemd:/\n",
        );
        let mounted = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
        let none = (
            "sys/fs/cgroup/memory/docker/0af/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        check(&[MACHINE, groups, none], Some(16 * GIB));
        check(&[MACHINE, groups, none, mounted], Some(GIB));
    }
}
