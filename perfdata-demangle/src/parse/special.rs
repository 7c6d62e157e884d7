//! What compilers generate for classes and functions: `<special-name>`.

use super::Parser;
use crate::node::{Node, NodeId};

impl Parser<'_> {
    /// `<special-name>`
    pub(super) fn special_name(&mut self) -> Option<NodeId> {
        let code = [self.next_byte()?, self.next_byte()?];
        let (words, of) = match &code {
            b"TV" => ("vtable for ", self.parse_type()?),
            b"TT" => ("VTT for ", self.parse_type()?),
            b"TI" => ("typeinfo for ", self.parse_type()?),
            b"TS" => ("typeinfo name for ", self.parse_type()?),
            b"TF" => ("typeinfo fn for ", self.parse_type()?),
            b"TJ" => ("java Class for ", self.parse_type()?),
            b"TA" => ("template parameter object for ", self.template_argument()?),
            b"Th" => {
                self.offset()?;
                ("non-virtual thunk to ", self.encoding()?)
            }
            b"Tv" => {
                self.virtual_offset()?;
                ("virtual thunk to ", self.encoding()?)
            }
            b"Tc" => {
                self.call_offset()?;
                self.call_offset()?;
                ("covariant return thunk to ", self.encoding()?)
            }
            b"TH" => ("TLS init function for ", self.any_name()?),
            b"TW" => ("TLS wrapper function for ", self.any_name()?),
            b"GV" => ("guard variable for ", self.any_name()?),
            b"GA" => ("hidden alias for ", self.encoding()?),
            b"GT" => match self.next_byte()? {
                b'n' => ("non-transaction clone for ", self.encoding()?),
                _ => ("transaction clone for ", self.encoding()?),
            },
            b"TC" => return self.construction_vtable(),
            b"GR" => return self.reference_temporary(),
            _ => return None,
        };
        self.make(Node::Special { words, of })
    }

    fn construction_vtable(&mut self) -> Option<NodeId> {
        let derived = self.parse_type()?;
        self.number().filter(|offset| *offset >= 0)?;
        self.byte(b'_')?;
        let base = self.parse_type()?;
        self.make(Node::ConstructionVtable { base, derived })
    }

    fn reference_temporary(&mut self) -> Option<NodeId> {
        let of = self.any_name()?;
        // An underscore alone is the first one.
        let number = match self.eat(b'_') {
            true => 0,
            false => self.number()?,
        };
        self.eat(b'_');
        let number = self.make(Node::Number(number))?;
        self.make(Node::ReferenceTemporary { number, of })
    }

    /// `<call-offset>`
    fn call_offset(&mut self) -> Option<()> {
        match self.next_byte()? {
            b'h' => self.offset(),
            b'v' => self.virtual_offset(),
            _ => None,
        }
    }

    fn offset(&mut self) -> Option<()> {
        self.number()?;
        self.byte(b'_')
    }

    fn virtual_offset(&mut self) -> Option<()> {
        self.offset()?;
        self.offset()
    }
}
