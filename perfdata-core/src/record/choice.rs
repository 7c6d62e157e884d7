//! Parts of a record whose structure depends on another field.

/// Declares a part with several forms:
/// `pub enum Name(selector: Type, layout) { pattern => Variant(Body), … }`. The first matching
/// pattern selects the form. If a body needs arguments, they follow `with`. Only the body is on the
/// wire. The field itself is declared with `#[br(args_raw = (selector, layout))]`.
macro_rules! choice {
    ($(#[$meta:meta])* pub enum $name:ident ($selector:ident: $by:ty, $layout:ident) {
        $($(#[$vmeta:meta])* $pattern:pat $(if $guard:expr)? => $variant:ident($body:ty $(as $style:ident)? $(=> $content:ident)?) $(with $args:expr)?),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$vmeta])* $variant($body)),*
        }

        /// The form that the default of the selecting field selects.
        impl Default for $name {
            #[allow(unused_variables, reason = "patterns bind what bodies take as arguments")]
            fn default() -> Self {
                let ($selector, $layout): ($by, $crate::decode_context::DecodeContext) = Default::default();
                let _ = &$layout;
                match $selector {
                    $($pattern $(if $guard)? => $name::$variant(<$body>::default()),)*
                }
            }
        }

        impl binrw::BinRead for $name {
            type Args<'a> = ($by, $crate::decode_context::DecodeContext);
            fn read_options<R: std::io::Read + std::io::Seek>(
                reader: &mut R,
                endian: binrw::Endian,
                ($selector, $layout): Self::Args<'_>,
            ) -> binrw::BinResult<Self> {
                let _ = &$layout;
                match $selector {
                    $($pattern $(if $guard)? =>
                        <$body as binrw::BinRead>::read_options(reader, endian, $crate::record::choice::choice!(@args $($args)?))
                            .map($name::$variant),)*
                }
            }
        }

        impl binrw::BinWrite for $name {
            type Args<'a> = ();
            fn write_options<W: std::io::Write + std::io::Seek>(&self, writer: &mut W, endian: binrw::Endian, (): ()) -> binrw::BinResult<()> {
                match self {
                    $($name::$variant(body) => body.write_options(writer, endian, ()),)*
                }
            }
        }

        impl $crate::values::FromValues for $name {
            fn from_values(
                values: &mut dyn $crate::values::Values,
                name: &'static str,
                _: $crate::describe::Style,
                ($selector, $layout): Self::Args<'_>,
            ) -> Self {
                let _ = &$layout;
                match $selector {
                    $($pattern $(if $guard)? => $name::$variant(<$body as $crate::values::FromValues>::from_values(
                        values,
                        name,
                        $crate::wire::wire!(@style $($style)?),
                        $crate::record::choice::choice!(@args $($args)?),
                    )),)*
                }
            }
        }

        $(const _: () = {
            let content = $crate::wire::wire!(@content ($($content)?) ($($style)?) []);
            assert!(
                content.is_some() || !<$body as $crate::content::Rewrite>::NEEDS_CONTENT,
                concat!("the content of `", stringify!($name), "::", stringify!($variant), "` is not declared: append `=> Content`")
            );
        };)*

        impl $crate::content::Rewrite for $name {
            const NEEDS_CONTENT: bool = false;
            fn rewrite(&mut self, name: &'static str, _: $crate::content::Content, rewriter: &mut dyn $crate::content::Rewriter) {
                match self {
                    $($name::$variant(body) => $crate::content::Rewrite::rewrite(
                        body,
                        name,
                        const { $crate::wire::or_fields($crate::wire::wire!(@content ($($content)?) ($($style)?) [])) },
                        rewriter,
                    ),)*
                }
            }
        }

        impl $crate::describe::Describe for $name {
            fn describe(&self, name: &'static str, _: $crate::describe::Style, v: &mut dyn $crate::describe::Visitor) {
                match self {
                    $($name::$variant(body) => body.describe(name, $crate::wire::wire!(@style $($style)?), v),)*
                }
            }
        }
    };
    (@args) => { Default::default() };
    (@args $args:expr) => { $args };
}
pub(crate) use choice;
