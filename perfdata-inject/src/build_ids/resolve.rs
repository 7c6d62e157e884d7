//! The sources of build IDs.

use std::collections::HashMap;
use std::fs;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use perfdata_core::Recording;
use perfdata_core::file_name::to_path;
use perfdata_session::{BuildId as Id, Dso, DsoKind, Machine};
use perfdata_symbols::{DebugLink, Elf, machine, namespace};

use super::known::KnownBuildIds;
use super::sysroot::Sysroot;
use crate::device::device;
use perfdata_convert::io::open_regular;
use perfdata_convert::support::os;

/// Paths of vDSOs. Their number of bits depends on the architecture.
const VDSO: [&str; 3] = [
    "/lib/modules/*/vdso/vdso64.so",
    "/lib/modules/*/vdso/vdso32.so",
    "/lib/modules/*/vdso/vdso.so",
];

/// A file in the cache: its machine, kind and name.
type FileKey = (Machine, DsoKind, Box<[u8]>);

/// Finds build IDs.
#[derive(Debug)]
pub struct Resolver {
    known: KnownBuildIds,
    sysroot: Sysroot,
    vmlinux: Option<PathBuf>,
    /// Whether images of the kernel are not used.
    ignores_vmlinux: bool,
    /// The folder with the file systems of guests.
    guests: Option<PathBuf>,
    /// The release of the recording's kernel.
    release: Option<String>,
    /// Whether the recording is of this running kernel, and whether it is of this machine.
    own_kernel: bool,
    own_machine: bool,
    /// Results for files that were already read: many processes map the same files.
    files: HashMap<FileKey, Result<Id, String>>,
}

impl Resolver {
    /// Returns a resolver that searches `sysroot`, and uses the user's build IDs and kernel image.
    pub fn new(known: KnownBuildIds, sysroot: Sysroot, vmlinux: Option<PathBuf>) -> Self {
        Resolver {
            known,
            sysroot,
            vmlinux,
            ignores_vmlinux: false,
            guests: None,
            release: None,
            own_kernel: false,
            own_machine: false,
            files: HashMap::new(),
        }
    }

    /// Returns the resolver, which uses no image of the kernel if `ignores` is set, only what the
    /// running kernel reports (`perf inject --ignore-vmlinux`).
    #[must_use]
    pub fn without_vmlinux(mut self, ignores: bool) -> Self {
        self.ignores_vmlinux = ignores;
        self
    }

    /// Returns the resolver, which looks for the files of the guest that process PID of the host
    /// runs in `folder`/PID (`perf inject --guestmount`).
    #[must_use]
    pub fn with_guests(mut self, folder: Option<PathBuf>) -> Self {
        self.guests = folder;
        self
    }

    /// Reads from `recording` on which machine it was made.
    pub fn learn(&mut self, recording: &Recording) {
        self.release = machine::release(recording).filter(|release| !release.contains('/'));
        let is_own = self.sysroot.is_own();
        self.own_kernel = is_own && machine::is_this_release(recording);
        self.own_machine = is_own && machine::is_this_machine(recording);
    }

    /// Returns the build ID of `object`.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn find(&mut self, object: &Dso) -> Result<Id, String> {
        if let Some(id) = object
            .mapped_build_id
            .or_else(|| self.known.get(&object.name))
        {
            return Ok(id);
        }
        let place = self.in_namespace(object);
        let name = place.as_ref().map(|place| place.as_os_str());
        let name = name.map_or(&*object.name, |name| name.as_encoded_bytes());
        let key = (object.machine, object.kind, name.into());
        if let Some(answer) = self.files.get(&key) {
            return answer.clone();
        }
        let answer = match object.kind {
            _ if object.machine.is_guest() => self.of_guest(object),
            DsoKind::Kernel => self.kernel(),
            DsoKind::Module => self.module(&object.name),
            DsoKind::Vdso => self.vdso(64),
            DsoKind::Vdso32 => self.vdso(32),
            DsoKind::File => match &place {
                Some(place) => in_elf(place).map_err(|e| format!("{}: {e}", place.display())),
                None => file(&self.sysroot, &object.name),
            },
            _ => Err("it is not a file".into()),
        };
        self.files.insert(key, answer.clone());
        answer
    }

    /// Returns where the file of a process in another mount namespace is, which still runs on this machine.
    fn in_namespace(&self, object: &Dso) -> Option<PathBuf> {
        let is_file = object.kind == DsoKind::File;
        let process = object.process.filter(|_| is_file && self.own_machine)?;
        namespace::place_of(process, to_path(&object.name)?)
    }

    /// Returns the build ID of an object of a guest.
    fn of_guest(&self, object: &Dso) -> Result<Id, String> {
        let folder = self
            .guests
            .as_ref()
            .filter(|_| object.machine != Machine::DEFAULT_GUEST);
        let Some(folder) = folder else {
            return Err("it belongs to a guest, whose files are not available".into());
        };
        let root = Sysroot::new(Some(folder.join(object.machine.0.to_string())));
        match object.kind {
            DsoKind::Kernel => {
                let notes = root.locate(Path::new("/sys/kernel/notes"));
                let bytes = fs::read(&notes).map_err(|e| format!("{}: {e}", notes.display()))?;
                machine::build_id_in_notes(&bytes)
                    .ok_or_else(|| format!("{}: no build ID", notes.display()))
            }
            DsoKind::Module => {
                file(&root, &object.name).or_else(|why| module_in(&root, &object.name).ok_or(why))
            }
            DsoKind::File => file(&root, &object.name),
            _ => Err("it is not a file of the guest".into()),
        }
    }

    /// Returns how the file of `object` has changed since it was recorded on this machine; `None`
    /// if it is the same.
    pub fn change(&self, object: &Dso) -> Option<String> {
        let then = object.file.as_ref().filter(|_| self.own_machine)?;
        let now = fs::metadata(to_path(&object.name)?).ok()?;
        let (dev, ino) = os::identity(&now)?;
        let (maj, min) = device(dev);
        if (then.device, then.inode) == ((maj, min), ino) {
            return None;
        }
        let place = |maj, min, ino| format!("inode {ino} of device {maj}:{min}");
        Some(format!(
            "{} then, {} now",
            place(then.device.0, then.device.1, then.inode),
            place(maj, min, ino)
        ))
    }

    fn kernel(&self) -> Result<Id, String> {
        if let Some(path) = self.vmlinux.as_ref().filter(|_| !self.ignores_vmlinux) {
            return in_elf(path).map_err(|e| format!("{}: {e}", path.display()));
        }
        if self.own_kernel
            && let Some(id) = machine::running_kernel()
        {
            return Ok(id);
        }
        if self.ignores_vmlinux {
            return Err("images of the kernel are not used (--ignore-vmlinux)".into());
        }
        self.released(&machine::KERNEL_IMAGES, |_| true)
            .ok_or_else(|| match (&self.release, self.own_kernel) {
                (None, _) => {
                    "the recording does not contain its release, and no kernel image was given"
                        .into()
                }
                (Some(release), false) => {
                    format!("no image of release {release} was found, and none was given")
                }
                (Some(_), true) => "the running kernel does not report it".into(),
            })
    }

    /// Returns the build ID of the first suitable file among paths that contain the kernel's
    /// release.
    fn released(&self, places: &[&str], is_meant: impl Fn(&Path) -> bool) -> Option<Id> {
        let release = self.release.as_deref()?;
        to_path(release.as_bytes())?;
        let path = |place: &&str| self.sysroot.locate(Path::new(&place.replace('*', release)));
        places
            .iter()
            .map(path)
            .filter(|path| is_meant(path))
            .find_map(|path| in_elf(&path).ok())
    }

    /// Returns the build ID of a module, whose name is a path, or a name in brackets.
    fn module(&self, name: &[u8]) -> Result<Id, String> {
        let file = match name.starts_with(b"/") {
            true => file(&self.sysroot, name),
            false => Err("the recording does not contain its path".into()),
        };
        file.or_else(|why| self.running_module(name).ok_or(why))
    }

    fn running_module(&self, name: &[u8]) -> Option<Id> {
        self.own_kernel
            .then(|| module_in(&Sysroot::default(), name))
            .flatten()
    }

    /// Returns the build ID of the vDSO for processes with `bits` bits. This process only has the
    /// vDSO for its own number of bits.
    fn vdso(&self, bits: u32) -> Result<Id, String> {
        if self.own_kernel && bits == usize::BITS {
            let image = machine::own_vdso().map_err(|e| e.to_string())?;
            return id_of(&Elf::from_bytes(image)?);
        }
        let is_meant = |path: &Path| Elf::open(path).is_ok_and(|elf| elf.is_64() == (bits == 64));
        self.released(&VDSO, is_meant)
            .ok_or_else(|| format!("found no image of the kernel's {bits}-bit vDSO"))
    }
}

/// Returns the build ID of a loaded module, which the kernel with the file system `root` reports.
fn module_in(root: &Sysroot, name: &[u8]) -> Option<Id> {
    let file = name.rsplit(|&byte| byte == b'/').next()?;
    let stem = file
        .strip_prefix(b"[")
        .unwrap_or(file)
        .split(|&byte| byte == b'.' || byte == b']')
        .next()?;
    let stem = String::from_utf8(stem.to_vec()).ok()?.replace('-', "_");
    let notes = Path::new("/sys/module")
        .join(to_path(stem.as_bytes())?)
        .join("notes/.note.gnu.build-id");
    machine::build_id_in_notes(&fs::read(root.locate(&notes)).ok()?)
}

/// Returns the build ID of a file in the file system `root`.
fn file(root: &Sysroot, name: &[u8]) -> Result<Id, String> {
    let path = to_path(name).filter(|path| path.has_root());
    let path = path.ok_or("it is not the path of a file")?;
    let elf = Elf::open(&root.locate(path))?;
    match elf.debug_link().filter(|_| elf.build_id().is_none()) {
        Some(link) => linked(root, path, &link),
        None => id_of(&elf),
    }
}

/// Returns the build ID of the debug file of the object at `path`.
fn linked(root: &Sysroot, path: &Path, link: &DebugLink) -> Result<Id, String> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let name = to_path(&link.name).ok_or("it has no build ID, and a debug link without a name")?;
    let debug =
        Path::new(machine::DEBUG_DIRECTORY).join(folder.strip_prefix("/").unwrap_or(folder));
    let mut why = format!(
        "it has no build ID, and its debug file {} was not found",
        name.display()
    );
    for place in [folder.to_owned(), folder.join(".debug"), debug] {
        let place = root.locate(&place.join(name));
        match crc32(&place) {
            Some(crc32) if crc32 == link.crc32 => {
                return in_elf(&place)
                    .map_err(|e| format!("its debug file {}: {e}", place.display()));
            }
            Some(crc32) => {
                why = format!(
                    "it has no build ID, and {} is not its debug file: CRC-32 {crc32:08x}, not {:08x}",
                    place.display(),
                    link.crc32
                );
            }
            None => {}
        }
    }
    Err(why)
}

fn in_elf(path: &Path) -> Result<Id, String> {
    id_of(&Elf::open(path)?)
}

fn id_of(elf: &Elf) -> Result<Id, String> {
    elf.build_id().ok_or_else(|| "it has no build ID".into())
}

/// Returns the CRC-32 of a file, if the file exists.
fn crc32(path: &Path) -> Option<u32> {
    let mut file = BufReader::with_capacity(1 << 16, open_regular(path).ok()?);
    let mut hasher = crc32fast::Hasher::new();
    let mut block = vec![0; 1 << 16];
    loop {
        match file.read(&mut block).ok()? {
            0 => return Some(hasher.finalize()),
            len => hasher.update(block.get(..len)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfdata_core::record::{CpuMode, Mmap};
    use perfdata_core::wire::Text;
    use perfdata_session::Mapped;

    /// Returns an object of the kernel of the guest that process `pid` runs.
    fn object(pid: u32, name: &str) -> Dso {
        let map = Mmap {
            pid,
            tid: 0,
            addr: 1 << 63,
            len: 0x1000,
            pgoff: 0,
            filename: Text::padded(name.as_bytes(), 8),
        };
        Mapped::of_mmap(&map, CpuMode::GUEST_KERNEL.0).dso.dso()
    }

    /// Returns a note with a build ID of these bytes.
    fn note(byte: u8) -> Vec<u8> {
        let numbers = [4_u32, 20, 3].map(u32::to_ne_bytes).concat();
        [&numbers[..], b"GNU\0", &[byte; 20]].concat()
    }

    #[test]
    fn guests_have_their_own_files() {
        let folder = tempfile::tempdir().unwrap();
        let guest = folder.path().join("77");
        let module = guest.join("sys/module/my_module/notes");
        fs::create_dir_all(guest.join("sys/kernel")).unwrap();
        fs::create_dir_all(&module).unwrap();
        fs::write(guest.join("sys/kernel/notes"), note(1)).unwrap();
        fs::write(module.join(".note.gnu.build-id"), note(2)).unwrap();
        let new = || Resolver::new(KnownBuildIds::default(), Sysroot::default(), None);
        let mut guests = new().with_guests(Some(folder.path().to_owned()));
        let kernel = object(77, "[guest.kernel.kallsyms.77]");
        assert_eq!(guests.find(&kernel), Ok(Id::new(&[1; 20]).unwrap()));
        assert_eq!(
            guests.find(&object(77, "[my-module]")),
            Ok(Id::new(&[2; 20]).unwrap())
        );
        let other = guests.find(&object(78, "[guest.kernel.kallsyms.78]"));
        let place: PathBuf = ["78", "sys", "kernel", "notes"].iter().collect();
        assert!(other.unwrap_err().contains(place.to_str().unwrap()));
        let unknown = object(0, "[guest.kernel.kallsyms]");
        assert!(guests.find(&unknown).unwrap_err().contains("not available"));
        assert!(new().find(&kernel).unwrap_err().contains("not available"));
    }

    #[test]
    fn images_of_the_kernel_can_be_ignored() {
        let image = std::env::current_exe().unwrap();
        let new = || {
            Resolver::new(
                KnownBuildIds::default(),
                Sysroot::default(),
                Some(image.clone()),
            )
        };
        let map = Mmap {
            pid: u32::MAX,
            tid: 0,
            addr: 1 << 63,
            len: 0x1000,
            pgoff: 0,
            filename: Text::padded(b"[kernel.kallsyms]_text", 8),
        };
        let kernel = Mapped::of_mmap(&map, CpuMode::KERNEL.0).dso.dso();
        let of_image = new().find(&kernel);
        let ignored = new().without_vmlinux(true).find(&kernel).unwrap_err();
        assert!(ignored.contains("--ignore-vmlinux"), "{ignored}");
        assert_ne!(of_image, Err(ignored));
    }
}
