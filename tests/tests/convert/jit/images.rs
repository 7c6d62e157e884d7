//! Where images are written.

use std::fs;
use std::os::unix::fs::symlink;

use perfdata_core::Endian as Order;
use perfdata_tests::convert::perfconv;
use perfdata_tests::synth::jitdump::{Dump, Header};
use perfdata_tests::told::Told;
use perfdata_tests::told::{MONOTONIC, made};

use super::{Place, life, told};

/// An image replaces a link of its name, and leaves alone what the link refers to. A conversion
/// that fails leaves no folder.
#[test]
fn images_are_never_written_through_links() {
    let place = Place::new();
    place.dump("jit-5.dump", life(false));
    let marker = place.name("jit-5.dump");
    let victim = place.path("victim");
    fs::write(&victim, "as it was").expect("a file");
    fs::create_dir(place.path("out.jit")).expect("a folder");
    symlink(&victim, place.path("out.jit/jitted-5-1.so")).expect("a link");
    fs::write(place.path("out.jit/other"), "kept").expect("a file");
    place.with(&told(&marker));
    assert_eq!(fs::read(&victim).expect("a file"), b"as it was");
    let image = fs::symlink_metadata(place.path("out.jit/jitted-5-1.so")).expect("an image");
    assert!(image.is_file());
    assert_eq!(
        fs::read(place.path("out.jit/other")).expect("a file"),
        b"kept"
    );

    let place = Place::new();
    place.dump("jit-5.dump", life(false));
    let marker = place.name("jit-5.dump");
    let input = place.path("in.data");
    made(&input, Order::Little, MONOTONIC, &told(&marker));
    let mut bytes = fs::read(&input).expect("a recording");
    // The size of the last mapping becomes too small for its fields.
    let at = bytes
        .windows(8)
        .rposition(|name| name == b"jit-5.du")
        .expect("its name");
    let header = bytes[..at]
        .windows(8)
        .rposition(|head| head[..6] == [10, 0, 0, 0, 2, 0]);
    let header = header.expect("its header");
    bytes[header + 6..header + 8].copy_from_slice(&16_u16.to_le_bytes());
    fs::write(&input, &bytes).expect("a file");
    place
        .convert(&input, None, |jit| jit, Vec::new())
        .expect_err("a corrupt record");
    assert!(!place.path("out.jit").exists() && !place.path("out.data").exists());
}

#[test]
fn the_command_needs_a_place_for_images() {
    let place = Place::new();
    place.dump("jit-5.dump", life(false));
    let marker = place.name("jit-5.dump");
    made(
        &place.path("in.data"),
        Order::Little,
        MONOTONIC,
        &told(&marker),
    );
    let run = |words: &[&str]| {
        let mut command = perfconv();
        let output = command.args(words).current_dir(place.folder()).output();
        let output = output.expect("perfconv runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    let (status, said) = run(&["convert", "--jit", "in.data", "-o", "-"]);
    assert!(status == Some(2) && said.contains("--jit-images"), "{said}");
    let (status, said) = run(&["convert", "--jit", "in.data", "-o", "/dev/null", "-f"]);
    assert!(status == Some(2) && said.contains("--jit-images"), "{said}");
    let (status, said) = run(&["convert", "-j", "in.data", "-o", "new.data"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(place.path("new.data.jit/jitted-5-1.so").is_file());
    fs::remove_file(place.path("new.data")).expect("the output");
    let (status, said) = run(&["convert", "--jit", "in.data", "-o", "new.data"]);
    assert!(
        status == Some(2) && said.contains("new.data.jit exists; --force"),
        "{said}"
    );
    let (status, _) = run(&["convert", "--jit", "in.data", "-o", "new.data", "-f"]);
    assert_eq!(status, Some(0));
    fs::create_dir(place.path("elsewhere")).expect("a folder");
    symlink("elsewhere", place.path("linked.data.jit")).expect("a link");
    let (status, said) = run(&["convert", "--jit", "in.data", "-o", "linked.data", "-f"]);
    assert!(
        status == Some(2) && said.contains("linked.data.jit is a link"),
        "{said}"
    );
    assert!(!place.path("linked.data").exists());
    let elsewhere = fs::read_dir(place.path("elsewhere")).expect("a folder");
    assert_eq!(elsewhere.count(), 0);
    let (status, said) = run(&["convert", "--jit", "--pid", "5", "in.data", "-o", "x.data"]);
    assert!(
        status == Some(2) && said.contains("and then select"),
        "{said}"
    );
    let (status, said) = run(&["split", "--by", "pid", "--jit", "in.data", "-o", "parts"]);
    assert!(
        status == Some(2) && said.contains("and then split"),
        "{said}"
    );
    let (status, said) = run(&["convert", "--jit-dir", ".", "in.data", "-o", "x.data"]);
    assert!(status == Some(2) && said.contains("--jit"), "{said}");
    // As perf inject: beside the dump.
    let (status, said) = run(&["inject", "-j", "-b", "-i", "in.data", "-o", "x.data"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(place.path("jitted-5-1.so").is_file());

    made(&place.path("in.data"), Order::Little, None, &told(&marker));
    let (status, said) = run(&["convert", "--jit", "in.data", "-o", "y.data"]);
    assert_eq!(status, Some(1));
    assert!(
        said.contains("-k mono; or name the difference with --jit-clock-offset"),
        "{said}"
    );
    let words = [
        "convert",
        "--jit",
        "--jit-clock-offset",
        "-5",
        "in.data",
        "-o",
        "y.data",
    ];
    assert_eq!(run(&words).0, Some(0));

    // A dump that the recording does not map, and whose header names the wrong clock.
    fs::create_dir(place.path("dumps")).expect("a folder");
    let header = Header {
        flags: 1,
        ..Header::of(5)
    };
    let dump = Dump::new(false, header).load(100, 0x1000, 1, "first", &[0x90; 16]);
    place.dump("dumps/jit-5.dump", dump);
    let told = [
        (10, Told::Map(5, 0x40_0000, 0x1000, "/bin/runtime")),
        (101, Told::Sample(5, 0x1000)),
    ];
    made(&place.path("in.data"), Order::Little, MONOTONIC, &told);
    let words = "convert --jit --jit-dir dumps --jit-clock mono in.data -o z.data";
    let words: Vec<&str> = words.split(' ').collect();
    let (status, said) = run(&words);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("jit-5.dump: 1 generated function"), "{said}");
    assert!(place.path("z.data.jit/jitted-5-1.so").is_file());
    // A version that nobody has described.
    let mut dump = Dump::new(false, Header::of(5)).bytes();
    dump[4] = 2;
    fs::write(place.path("dumps/jit-5.dump"), dump).expect("a file");
    let (status, said) = run(&[
        "convert",
        "-f",
        "--jit",
        "--jit-dir",
        "dumps",
        "in.data",
        "-o",
        "z.data",
    ]);
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(said.matches("version").count(), 1, "{said}");
}
