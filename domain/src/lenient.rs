//! Reading JSON that may hold anything: what has the wrong type counts as absent.
//!
//! Costs nothing over plain serde: no tree is built, unknown fields are skipped.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A scalar as text; empty for anything else.
#[derive(Default)]
pub(crate) struct Text<'a>(Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::from(&*self.0)
    }

    pub(crate) fn non_empty(&self) -> Option<Arc<str>> {
        (!self.is_empty()).then(|| self.shared())
    }
}

/// An object read as `T`; `T::default()` for anything else.
#[derive(Default)]
pub(crate) struct Struct<T>(pub(crate) T);

/// A list read as `T`s; empty for anything else.
pub(crate) struct Items<T>(pub(crate) Vec<T>);

impl<T> Default for Items<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// The first item of a list; the others are skipped.
pub(crate) struct First<T>(pub(crate) Option<T>);

impl<T> Default for First<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// The methods of a visitor that take anything unexpected for absent.
macro_rules! absent {
    (scalars) => {
        absent!(visit_bool bool, visit_i64 i64, visit_u64 u64, visit_f64 f64, visit_str &str);
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (object) => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
    (list) => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
            while items.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
    ($($method:ident $scalar:ty),*) => {
        $(fn $method<E>(self, _: $scalar) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        })*
    };
}

macro_rules! expecting {
    ($what:literal) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str($what)
        }
    };
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    expecting!("a scalar");

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(if value { "true" } else { "false" })))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(number.to_string())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(number.to_string())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(number.to_string())))
    }

    fn visit_unit<E>(self) -> Result<Text<'de>, E> {
        Ok(Text::default())
    }

    absent!(object);
    absent!(list);
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct StructVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for StructVisitor<T> {
    type Value = Struct<T>;

    expecting!("an object");

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Struct<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Struct)
    }

    absent!(scalars);
    absent!(list);
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Struct<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StructVisitor(PhantomData))
    }
}

struct ItemsVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ItemsVisitor<T> {
    type Value = Items<T>;

    expecting!("a list");

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Items<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(items)).map(Items)
    }

    absent!(scalars);
    absent!(object);
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Items<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ItemsVisitor(PhantomData))
    }
}

struct FirstVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FirstVisitor<T> {
    type Value = First<T>;

    expecting!("a list");

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<First<T>, A::Error> {
        let first = items.next_element()?;
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(First(first))
    }

    absent!(scalars);
    absent!(object);
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for First<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FirstVisitor(PhantomData))
    }
}
