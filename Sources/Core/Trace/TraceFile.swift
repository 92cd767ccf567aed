// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The file of a trace: packets go in whole, up to a bound.
///
/// `@unchecked Sendable`: the control thread opens it, the trace thread has it from then on.
struct TraceFile: @unchecked Sendable {
    /// Room for the last packets.
    private static let lastBytes = 16 << 10

    let file: HeldFile
    let mostBytes: Int
    /// How many bytes are written.
    private(set) var byteCount = 0

    /// Whether `pending` further bytes would fill the file.
    func isFull(with pending: Int) -> Bool { byteCount + pending > mostBytes - Self.lastBytes }

    /// Writes the pending bytes. On a fault it removes what was written of them, so that the file ends with a whole
    /// packet.
    ///
    /// - Returns: 0, or errno.
    mutating func write(_ pending: [UInt8]) -> Int32 {
        guard !pending.isEmpty else { return 0 }
        let code = pending.withUnsafeBytes { file.write($0, patience: 10_000_000_000) }
        guard code == 0 else {
            if file.isRegular { _ = SystemCall.retrying { ftruncate(file.descriptor, off_t(byteCount)) } }
            return code
        }
        byteCount += pending.count
        return 0
    }

    /// - Returns: 0, or errno: some network file systems say only here that they had no room.
    func close() -> Int32 { file.close() }
}
