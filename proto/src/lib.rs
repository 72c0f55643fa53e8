//! The protobuf contract.
