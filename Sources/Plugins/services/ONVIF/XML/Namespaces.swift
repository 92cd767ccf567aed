// SPDX-License-Identifier: Apache-2.0

/// The namespaces of what is read and written.
enum Namespaces {
    static let envelope = "http://www.w3.org/2003/05/soap-envelope"
    static let device = "http://www.onvif.org/ver10/device/wsdl"
    static let media = "http://www.onvif.org/ver10/media/wsdl"
    static let media2 = "http://www.onvif.org/ver20/media/wsdl"
    static let events = "http://www.onvif.org/ver10/events/wsdl"
    /// WS-BaseNotification: Renew, Unsubscribe.
    static let notification = "http://docs.oasis-open.org/wsn/b-2"
    /// Of the types of devices, NetworkVideoTransmitter among them.
    static let network = "http://www.onvif.org/ver10/network/wsdl"
    static let discovery = "http://schemas.xmlsoap.org/ws/2005/04/discovery"
    /// WS-Addressing as WS-Discovery of 2005 has it.
    static let oldAddressing = "http://schemas.xmlsoap.org/ws/2004/08/addressing"

    /// Declarations of an answer of a service. All of them, whatever it uses: recorders that compare texts know these.
    static let ofAnswers: [(name: String, value: String)] = [
        ("xmlns:s", envelope), ("xmlns:wsa", "http://www.w3.org/2005/08/addressing"),
        ("xmlns:tds", device), ("xmlns:trt", media), ("xmlns:tr2", media2), ("xmlns:tev", events),
        ("xmlns:tt", "http://www.onvif.org/ver10/schema"), ("xmlns:ter", "http://www.onvif.org/ver10/error"),
        ("xmlns:tns1", "http://www.onvif.org/ver10/topics"), ("xmlns:wsnt", notification),
        ("xmlns:wstop", "http://docs.oasis-open.org/wsn/t-1"), ("xmlns:xs", "http://www.w3.org/2001/XMLSchema"),
        ("xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance"),
        ("xmlns:wsrfr", "http://docs.oasis-open.org/wsrf/r-2"),
    ]

    static let ofDiscovery: [(name: String, value: String)] = [
        ("xmlns:s", envelope), ("xmlns:a", oldAddressing), ("xmlns:d", discovery),
        ("xmlns:dn", network), ("xmlns:tds", device),
    ]
}
