//! A Model Context Protocol proxy that lets through only what is well-formed, allowed and asked for.
