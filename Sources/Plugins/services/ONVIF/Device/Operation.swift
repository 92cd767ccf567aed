// SPDX-License-Identifier: Apache-2.0

/// What an operation of a service needs: the request, and what the device is.
struct Call: Sendable {
    var request: SOAPRequest
    var facts: DeviceFacts
    /// `http://HOST:PORT`, as this client reaches the device.
    var base: String
    /// The host of ``base``, in brackets where it must be, for addresses of streams.
    var host: String
    /// The client's address, by which subscriptions are counted.
    var client = ""
    /// The connection's own end, as a URL has it: `192.0.2.7`, `[2001:db8::7]`.
    var localHost = "127.0.0.1"
    /// Seconds since 1970.
    var wall: Int64
    /// Whether the client has shown that it may use the device.
    var isKnown = false

    var body: XMLElement { request.body }

    /// The token of a profile or configuration that the request names.
    func token(_ name: String) -> String { body[name]?.value ?? "" }
}

/// What an operation answers at once.
typealias Operation = @Sendable (Call) throws(SOAPFault) -> XMLNode

/// Where services are.
enum ServicePath {
    static let device = "/onvif/device_service"
    static let media = "/onvif/media_service"
    static let media2 = "/onvif/media2_service"
    static let events = "/onvif/event_service"
    static let subscription = "/onvif/subscription/"
    static let snapshot = "/onvif/snapshot/"
}
