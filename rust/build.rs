//! Links libaccountant: compiled from the sources beside this crate, or else found by pkg-config.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn output(command: &mut Command) -> Option<String> {
    let done = command.output().ok()?;
    done.status
        .success()
        .then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}

fn compiled(sources: &Path) {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    // The levels of cargo's profiles are not those of the library, whose Makefile knows its flags.
    let done = Command::new("make")
        .arg("-C")
        .arg(sources)
        .arg(format!("build={}", out.display()))
        .args(["static", "CFLAGS=-g0"])
        .env_remove("MAKEFLAGS")
        .status()
        .expect("make must be installed to compile libaccountant");
    assert!(done.success(), "libaccountant could not be compiled");
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=accountant");
    println!("cargo:rustc-link-lib=m");
    for folder in ["include", "src", "Makefile", "../accountant/_core/src"] {
        println!("cargo:rerun-if-changed={}", sources.join(folder).display());
    }
}

fn installed() {
    let flags = output(Command::new("pkg-config").args(["--libs", "libaccountant"]))
        .expect("pkg-config must find libaccountant: install it, and set PKG_CONFIG_PATH");
    for flag in flags.split_whitespace() {
        if let Some(folder) = flag.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if let Some(library) = flag.strip_prefix("-l") {
            println!("cargo:rustc-link-lib={library}");
        }
    }
}

fn main() {
    println!("cargo:rerun-if-env-changed=LIBACCOUNTANT_INSTALLED");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let beside = fs::canonicalize(root.join("../libaccountant"));
    match beside {
        Ok(sources) if env::var_os("LIBACCOUNTANT_INSTALLED").is_none() => compiled(&sources),
        _ => installed(),
    }
}
