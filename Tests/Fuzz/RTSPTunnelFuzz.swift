// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// RTSP in Base64, as it comes through HTTP. Any bytes decode alike however they are cut; what was coded piece by piece
/// comes back whole; a tunnel reads the same requests as a connection of its own.
func fuzzRTSPTunnel(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: bytes, count: count))
    let sum = Int(input.reduce(0) { $0 ^ $1 })
    // As a client's Base64.
    let whole = decoded(input, step: max(count, 1))
    precondition(decoded(input, step: 1 + sum % 7) == whole, "cut into pieces it decodes differently")
    precondition(whole.bytes.count <= count, "\(whole.bytes.count) bytes of \(count)")
    // As a client's RTSP, coded in pieces, which is how requests come.
    let coded = codedInPieces(input, size: 1 + sum % 50)
    let back = decoded(coded, step: 1 + sum % 11)
    precondition(back.isWhole && back.bytes == input, "it does not come back")
    precondition(throughTunnel(coded, step: 1 + sum % 13) == items(input), "a tunnel reads other requests")
    return 0
}

private struct Decoded: Equatable {
    var bytes: [UInt8] = []
    var isWhole = true
}

private func decoded(_ input: [UInt8], step: Int) -> Decoded {
    var stream = Base64Stream()
    var result = Decoded()
    for first in stride(from: 0, to: input.count, by: step) {
        let piece = input[first..<min(first + step, input.count)]
        guard result.isWhole else { break }
        result.isWhole = piece.withUnsafeBytes { stream.decode($0, into: &result.bytes) }
    }
    return result
}

private func codedInPieces(_ input: [UInt8], size: Int) -> [UInt8] {
    var coded: [UInt8] = []
    for first in stride(from: 0, to: input.count, by: size) {
        coded += Array(Base64.encode(Array(input[first..<min(first + size, input.count)])).utf8)
        if first % 3 == 0 { coded += [13, 10] }
    }
    return coded
}

private func items(_ input: [UInt8]) -> [WireReader.Item] {
    var reader = WireReader()
    reader.append(input)
    var items: [WireReader.Item] = []
    while let item = reader.next() { items.append(item) }
    return items
}

/// As the connection of a POST and that of its GET do.
private func throughTunnel(_ coded: [UInt8], step: Int) -> [WireReader.Item] {
    var post = WireReader()
    var stream = Base64Stream()
    var get = WireReader()
    var items: [WireReader.Item] = []
    let head = Array("POST /live HTTP/1.0\r\nx-sessioncookie: a\r\nContent-Length: 32767\r\n\r\n".utf8)
    let all = head + coded
    var heads = 0
    for first in stride(from: 0, to: all.count, by: step) {
        post.append(Array(all[first..<min(first + step, all.count)]))
        while post.next() != nil { heads += 1 }
        var plain: [UInt8] = []
        let isWhole = post.takeRaw().withUnsafeBytes { stream.decode($0, into: &plain) }
        precondition(isWhole, "its own Base64 is none")
        get.append(plain)
        while let item = get.next() { items.append(item) }
    }
    precondition(heads == 1, "\(heads) heads")
    return items
}
