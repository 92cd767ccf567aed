// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// Feeds any text to the readers of single headers, URLs, session descriptions, addresses and credentials: what one
/// reads comes back from what it writes.
func fuzzRTSPHeaders(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let text = String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    if let url = RTSPURL(text) {
        precondition(!url.path.isEmpty, "no path in \(text)")
        var complete = url
        if complete.host.isEmpty { complete.host = "h" }
        precondition(RTSPURL(complete.text) == complete, "another URL came back from \(complete.text)")
    }
    for spec in TransportHeader.parse(text) {
        guard let again = TransportSpec(spec.text) else { fatalError("its own transport was refused: \(spec.text)") }
        precondition(
            again.interleaved == spec.interleaved && again.clientPort == spec.clientPort && again.ssrc == spec.ssrc,
            "\(spec.text)")
    }
    if let session = SessionHeader(text) { precondition(SessionHeader(session.text) == session, "\(session.text)") }
    if let info = RTPInfo(text), info.url.utf8.allSatisfy({ $0 < 128 }) {
        precondition(RTPInfo(info.text)?.sequenceNumber == info.sequenceNumber, "\(info.text)")
    }
    if let range = PlayRange(text), case .seconds(let from, let to) = range {
        precondition(from.isFinite && to?.isFinite != false, text)
    }
    if case .basic(let name, let password) = Authorization(text) {
        precondition(
            Authorization(Authorization.basic(name: name, password: password).text)
                == .basic(name: name, password: password), text)
    }
    if let address = IPAddress(text) { precondition(IPAddress(address.description) == address, address.description) }
    _ = AddressRange(text)?.contains(.loopback)
    _ = SessionDescription(parsing: text)
    _ = Credentials.parse(text)
    if let decoded = Base64.decode(text) { precondition(Base64.decode(Base64.encode(decoded)) == decoded, text) }
    return 0
}
