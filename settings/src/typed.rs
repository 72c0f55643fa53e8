//! The structs of all sections and how each is read, made from `table.rs`.

use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use super::assemble;
use super::reader::{Group, Read, Reader, Setting};
use super::secret::SecretSource;
use super::table::{dotted, every_key};
use super::types::{
    ByteSize, LogFormat, LogLevel, ProbePaths, Region, ReplaceOutdatedPods, ReportAddress,
    UpgradesMode, Url, WritesMode,
};
use super::{AccessInputs, RateLimit, Vault};

macro_rules! typed {
    ($(
        $(#[doc = $about:literal])*
        section $path:tt $form:ident $name:ident $(, checked by $check:path)? {
            $(
                $(#[doc = $doc:literal])*
                $key:ident: $type:ty = $spec:expr $(, by $by:path)? $(, with $swallowed:tt)?;
            )*
        } $(plus {
            $(
                $(#[doc = $field_doc:literal])*
                $field:ident: $field_type:ty $(, by $field_by:path)?;
            )*
        })?
    )*) => {$(
        section! {
            $form $name $path [$($check)?]
            { $([$($doc)*] $key: $type $(, by $by)?;)* }
            { $($([$($field_doc)*] $field: $field_type $(, by $field_by)?;)*)? }
        }
    )*};
}

/// Every field is read before the first `?`, so that one problem hides no other.
macro_rules! section {
    (
        always $name:ident $path:tt [$($check:path)?]
        { $([$($doc:literal)*] $key:ident: $type:ty $(, by $by:path)?;)* }
        { $([$($field_doc:literal)*] $field:ident: $field_type:ty $(, by $field_by:path)?;)* }
    ) => {
        #[doc = heading!($path)]
        #[derive(Debug, Clone)]
        pub struct $name {
            $($(#[doc = $doc])* pub $key: $type,)*
            $($(#[doc = $field_doc])* pub $field: $field_type,)*
        }

        impl Setting for $name {
            fn read(r: &mut Reader<'_>, _: &str) -> Read<Self> {
                $(let $key: Read<$type> = read!(r, dotted!($path $key) $(, $by)?);)*
                $(let $field: Read<$field_type> = read!(r, dotted!($path $field) $(, $field_by)?);)*
                $($check(r)?;)?
                Ok(Self { $($key: $key?,)* $($field: $field?,)* })
            }
        }
    };
    (optional $name:ident $path:tt [] { $([$($doc:literal)*] $key:ident: $type:ty;)* } {}) => {
        #[doc = heading!($path)]
        #[derive(Debug, Clone)]
        pub struct $name {
            $(#[doc = concat!("`", dotted!($path $key), "`")] $(#[doc = $doc])* pub $key: $type,)*
        }

        impl Group for $name {
            const PATHS: &'static [&'static str] = &[$(dotted!($path $key)),*];

            fn parts(r: &mut Reader<'_>) -> Read<Option<Self>> {
                $(let $key = <Option<$type>>::read(r, dotted!($path $key));)*
                Ok(match ($($key?,)*) {
                    ($(Some($key),)*) => Some(Self { $($key),* }),
                    _ => None,
                })
            }
        }
    };
    (keys $($by_hand:tt)*) => {};
}

macro_rules! heading {
    ([]) => {
        "The checked configuration of this process."
    };
    ($path:tt) => {
        concat!("`", dotted!($path), ".*`")
    };
}

macro_rules! read {
    ($r:ident, $path:expr) => {
        Setting::read($r, $path)
    };
    ($r:ident, $path:expr, $by:path) => {
        $by($r, $path)
    };
}

every_key!(typed);
