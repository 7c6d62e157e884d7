//! Setters of structures that may get new fields, so that other crates can make them.

/// Declares a setter that takes and returns the structure, for each field.
macro_rules! setters {
    ($name:ident { $($field:ident: $type:ty => $setter:ident),* $(,)? }) => {
        impl $name {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), ").")]
                #[must_use]
                pub fn $setter(self, $field: $type) -> Self {
                    $name { $field, ..self }
                }
            )*
        }
    };
}

pub(crate) use setters;
