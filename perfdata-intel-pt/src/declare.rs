//! `packets!`, from whose declarations everything about packets follows.

/// Declares all packets.
///
/// - `plain`: those that always have the same bytes.
/// - `addresses`: those with a compressed address, by the low bits of the first byte.
/// - `others`: types that read and write themselves.
/// - `fields`: size in bytes, first bytes, and fields with their bits, counted from bit 0 of the
///   first byte. `in` names the block to which an item belongs, `if` what must hold of the fields,
///   and `=>` prints what `perf script -D` does after the name.
macro_rules! packets {
    (
        plain { $( $(#[$plain_doc:meta])* $plain:ident $plain_name:literal [$($plain_byte:literal),+], )* }
        addresses { $( $(#[$ip_doc:meta])* $ip:ident $ip_name:literal $ip_header:literal, )* }
        others { $( $(#[$other_doc:meta])* $other:ident $other_name:literal, )* }
        fields { $(
            $(#[$doc:meta])*
            $packet:ident $name:literal $size:literal [$($byte:literal),+]
            $(in $block:ident)?
            { $( $(#[$field_doc:meta])* $field:ident: $type:ty = $from:literal..$to:literal, )+ }
            $(if $valid:expr,)?
            => $show:expr,
        )* }
    ) => {
        /// A packet.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Packet {
            $( $(#[$plain_doc])* $plain, )*
            $( $(#[$ip_doc])* $ip(CompressedIp), )*
            $( $(#[$other_doc])* $other($other), )*
            $( $(#[$doc])* $packet($packet), )*
        }

        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
            pub struct $packet {
                $( $(#[$field_doc])* pub $field: $type, )+
            }

            impl $packet {
                const SHAPE: Shape = Shape::new($size, &[$($byte),+], &[$(($from, $to)),+]);

                fn fields_of(word: u128) -> Self {
                    $packet { $( $field: FieldBits::from_bits(bits::bits(word, $from, $to)), )+ }
                }

                /// Returns the bits of the fields at their place in the packet.
                fn word(&self) -> u128 {
                    $( bits::place(self.$field, $from, $to) )|+
                }

                /// Returns whether the packet is valid.
                fn is_valid(&self) -> bool {
                    true $( && { let valid: fn(&Self) -> bool = $valid; valid(self) } )?
                }
            }
        )*

        /// The shapes of packets whose bytes never change.
        const PLAIN: &[(Packet, Shape)] = &[
            $( (Packet::$plain, Shape::new([$($plain_byte),+].len(), &[$($plain_byte),+], &[])), )*
        ];

        impl Packet {
            /// Returns the name of the packet, as `perf script -D` prints it.
            pub const fn name(&self) -> &'static str {
                match self {
                    $( Packet::$plain => $plain_name, )*
                    $( Packet::$ip(_) => $ip_name, )*
                    $( Packet::$other(_) => $other_name, )*
                    $( Packet::$packet(_) => $name, )*
                }
            }

            /// Returns the size of the packet in bytes.
            pub fn size(&self) -> usize {
                match self {
                    $( Packet::$plain => [$($plain_byte),+].len() , )*
                    $( Packet::$ip(ip) => ip.size(), )*
                    $( Packet::$other(other) => other.size(), )*
                    $( Packet::$packet(_) => $packet::SHAPE.size, )*
                }
            }

            /// Appends the bytes of the packet.
            pub fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $( Packet::$plain => out.extend([$($plain_byte),+]), )*
                    $( Packet::$ip(ip) => ip.write($ip_header, out), )*
                    $( Packet::$other(other) => other.write(out), )*
                    $( Packet::$packet(packet) => $packet::SHAPE.write(packet.word(), out), )*
                }
            }

            /// Passes each field to `visit`: its name, its value as a number, and the maximum number
            /// of bits. The values of TNT packets and of addresses are the bits in the packet.
            pub fn fields(&self, visit: &mut dyn FnMut(&'static str, u64, u32)) {
                match self {
                    $( Packet::$plain => {} )*
                    $( Packet::$ip(CompressedIp::Suppressed) => {} )*
                    $( Packet::$ip(ip) => visit("ip", ip.payload(), 64), )*
                    $( Packet::$other(other) => other.fields(visit), )*
                    $( Packet::$packet(packet) => {
                        $( visit(stringify!($field), packet.$field.to_bits(), $to - $from); )+
                    } )*
                }
            }

            /// Decodes a packet with a compressed address, if the first byte is that of one.
            #[inline]
            fn with_address(first: u8, bytes: &[u8]) -> Option<Result<Packet, BadPacket>> {
                match first & 0x1f {
                    $( $ip_header => Some(CompressedIp::read(bytes).map(Packet::$ip)), )*
                    _ => None,
                }
            }

            /// Decodes a packet whose bytes never change, or whose fields are always at the same
            /// bits.
            fn of_shape(bytes: &[u8], block: Option<BlockItemSize>) -> Result<Packet, BadPacket> {
                let (word, len) = (bits::word(bytes), bytes.len());
                let mut error = BadPacket::Unknown;
                for (packet, shape) in PLAIN {
                    match shape.compare(word, len) {
                        Comparison::Equal => return Ok(*packet),
                        Comparison::Prefix => error = BadPacket::Truncated,
                        Comparison::Different => {}
                    }
                }
                $(
                    if true $( && block == Some(BlockItemSize::$block) )? {
                        match $packet::SHAPE.compare(word, len) {
                            Comparison::Equal => {
                                let packet = $packet::fields_of(word);
                                if packet.is_valid() {
                                    return Ok(Packet::$packet(packet));
                                }
                            }
                            Comparison::Prefix => error = BadPacket::Truncated,
                            Comparison::Different => {}
                        }
                    }
                )*
                Err(error)
            }
        }

        /// The text of `perf script -D`.
        impl fmt::Display for Packet {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())?;
                match self {
                    $( Packet::$plain => Ok(()), )*
                    $( Packet::$ip(ip) => write!(f, " {ip}"), )*
                    $( Packet::$other(other) => write!(f, " {other}"), )*
                    $( Packet::$packet(packet) => {
                        let show: fn(&$packet, &mut fmt::Formatter<'_>) -> fmt::Result = $show;
                        show(packet, f)
                    } )*
                }
            }
        }
    };
}

pub(crate) use packets;
