// SPDX-License-Identifier: Apache-2.0

// What HTTP servers need in addition. It is in the image that has SwiftNIO, since hummingbird's channels are NIO's. A
// module of its own, so that the other network plugins neither import nor compile against it.
@_exported import FrameNetwork
@_exported import HTTPTypes
@_exported import HummingbirdCore
@_exported import Logging
@_exported import NIOHTTP1
@_exported import NIOHTTPTypes
@_exported import NIOWebSocket
