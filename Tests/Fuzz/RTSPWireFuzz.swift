/// Feeds any bytes to ``WireReader`` and what it reads to ``Signalling``. However the bytes are cut, the same items must come; what is kept is bounded; a
/// request that was read comes back from its own bytes.
///
/// Built with the pure folders of the RTSP sink in one module, without a package: see `make fuzz`.
@c(LLVMFuzzerTestOneInput)
public func fuzzRTSPWire(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: bytes, count: count))
    let whole = items(input, step: max(count, 1))
    precondition(items(input, step: 1) == whole, "cut into single bytes it reads differently")
    precondition(items(input, step: 7) == whole, "cut into sevens it reads differently")
    converse(whole)
    return 0
}

private func items(_ input: [UInt8], step: Int) -> [WireReader.Item] {
    var reader = WireReader()
    var items: [WireReader.Item] = []
    var rest = input[...]
    while !rest.isEmpty {
        reader.append(Array(rest.prefix(step)))
        rest = rest.dropFirst(step)
        while let item = reader.next() { items.append(item) }
        precondition(reader.pendingByteCount <= 40_000 + step, "\(reader.pendingByteCount) bytes are kept")
    }
    return items
}

/// A session that is set up already, with credentials asked for on another path.
private func converse(_ items: [WireReader.Item]) {
    var number: UInt64 = 0
    var signalling = Signalling(policy: SessionPolicy(serverPorts: .init(8000, 8001)), random: { 7 })
    let description = SessionDescription(sessionID: 1, address: "", name: "live", sps: [0x67, 1, 2, 3], pps: [0x68])
    signalling.setPath("/live", ServedPath(description: description, ssrc: 1))
    let challenge = Challenge(scheme: .digest, credentials: Credentials(["a": "b"]))
    signalling.setPath("/closed", ServedPath(description: description, ssrc: 1, challenge: challenge))
    precondition(signalling.open(1, peer: .loopback, local: .loopback, isSecure: false, now: 0) == nil, "no connection")
    for item in items {
        number += 1
        guard case .request(let request) = item else { continue }
        let actions = signalling.handle(request, from: 1, now: Int64(number))
        precondition(!actions.isEmpty, "a request without an answer")
        for action in actions {
            switch action {
            case .respond(let response), .play(_, let response), .pause(_, let response):
                precondition(WireReaderCheck.isOneResponse(response.bytes), "a response that cannot be read")
            case .end, .close: continue
            }
        }
        precondition(signalling.sessions.count <= Signalling.mostSessionsPerConnection, "\(signalling.sessions.count) sessions")
    }
    _ = signalling.closed(1, now: Int64(number))
    precondition(
        signalling.sessions.values.allSatisfy { if case .udp = $0.transport { true } else { false } }, "a session outlives its connection")
    _ = signalling.expire(now: 1 << 60)
    precondition(signalling.isEmpty, "something is left")
}

/// What the server says must be readable by its own reader.
enum WireReaderCheck {
    static func isOneResponse(_ bytes: [UInt8]) -> Bool {
        if bytes.starts(with: Array("HTTP/1.1 405 ".utf8)) { return true }
        var reader = WireReader(limits: WireReader.Limits(headBytes: 64 << 10, requestLineBytes: 32 << 10))
        reader.append(bytes)
        return reader.next() == .response && reader.next() == nil && reader.isIdle
    }
}
