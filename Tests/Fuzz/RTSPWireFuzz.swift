// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// Feeds any bytes to ``WireReader``, and what it reads to ``Signalling`` and to the reader of RTCP. However the bytes
/// are cut, the same items must come; what is kept is bounded; a request that was read comes back from its own bytes;
/// every answer can be read.
///
/// Built with the pure folders of the RTSP sink in one module, without a package: see `make fuzz`.
func fuzzRTSPWire(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = UnsafeRawBufferPointer(start: bytes, count: count)
    let whole = items(input, step: max(count, 1))
    // Cut into pieces of 1 to 8 bytes: how many, the input says.
    let step = 1 + Int(input.reduce(0) { $0 ^ $1 } & 7)
    precondition(items(input, step: step) == whole, "cut into pieces of \(step) it reads differently")
    for case .request(let request) in whole { comesBack(request) }
    converse(whole)
    return 0
}

private func items(_ input: UnsafeRawBufferPointer, step: Int) -> [WireReader.Item] {
    var reader = WireReader()
    var items: [WireReader.Item] = []
    for first in stride(from: 0, to: input.count, by: step) {
        reader.append(UnsafeRawBufferPointer(rebasing: input[first..<min(first + step, input.count)]))
        while let item = reader.next() { items.append(item) }
        precondition(reader.pendingByteCount <= 40_000 + step, "\(reader.pendingByteCount) bytes are kept")
    }
    return items
}

/// Its text may have grown: what is no UTF-8 is replaced.
private func comesBack(_ request: RTSPRequest) {
    var reader = WireReader(limits: WireReader.Limits(headBytes: 64 << 10, requestLineBytes: 32 << 10))
    reader.append(request.bytes)
    precondition(reader.next() == .request(request) && reader.isIdle, "another request came back from \(request)")
}

/// A session that is set up already, with credentials asked for on another path.
private func converse(_ items: [WireReader.Item]) {
    var number: UInt64 = 0
    let numbers = Numbers()
    var signalling = Signalling(policy: SessionPolicy(serverPorts: .init(8000, 8001)), random: { numbers.next() })
    let description = SessionDescription(sessionID: 1, address: "", name: "live", sps: [0x67, 1, 2, 3], pps: [0x68])
    signalling.setPath("/live", ServedPath(description: description, ssrc: 1))
    let challenge = Challenge(scheme: .digest, credentials: Credentials(["a": "b"]))
    signalling.setPath("/closed", ServedPath(description: description, ssrc: 1, challenge: challenge))
    precondition(signalling.open(1, peer: .loopback, local: .loopback, isSecure: false, now: 0) == nil, "no connection")
    for item in items {
        number += 1
        if case .frame(_, let payload) = item { _ = RTCP.receptionReport(payload) }
        guard case .request(let request) = item else { continue }
        let actions = signalling.handle(request, from: 1, now: Int64(number))
        precondition(!actions.isEmpty, "a request without an answer")
        for action in actions {
            switch action {
            case .respond(let response), .play(_, let response), .pause(_, let response), .openTunnel(let response):
                precondition(isOneResponse(response.bytes), "a response that cannot be read")
            case .end, .close, .joinTunnel: continue
            }
        }
    }
    _ = signalling.closed(1, now: Int64(number))
    precondition(
        signalling.sessions.values.allSatisfy { if case .udp = $0.transport { true } else { false } },
        "a session outlives its connection")
    _ = signalling.expire(now: 1 << 60)
    precondition(signalling.isEmpty, "something is left")
}

/// What the server says must be readable by its own reader.
private func isOneResponse(_ bytes: [UInt8]) -> Bool {
    if bytes.starts(with: Array("HTTP/1.".utf8)) { return true }
    var reader = WireReader(limits: WireReader.Limits(headBytes: 64 << 10, requestLineBytes: 32 << 10))
    reader.append(bytes)
    return reader.next() == .response && reader.next() == nil && reader.isIdle
}
