// SPDX-License-Identifier: Apache-2.0

// Everything of SwiftNIO that framehost's plugins use, in one image: event loops, locks and TLS contexts of two copies
// could not work together.
@_exported import NIOConcurrencyHelpers
@_exported import NIOCore
@_exported import NIOPosix
@_exported import NIOSSL
