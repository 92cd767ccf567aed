// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore
import Glibc

/// Decides which certificates of servers are accepted. Read by libavformat's threads; immutable, hence `@unchecked
/// Sendable`.
final class CertificateTrust: @unchecked Sendable {
    private let trust: UnsafeMutablePointer<fh_av_trust>

    /// [control thread]
    ///
    /// - Parameter caFile: A file of authorities that replaces the system's.
    /// - Throws: ``FrameHostError`` where the file cannot be read, which libavformat would ignore.
    init(verify: Bool, caFile: String?) throws {
        if let caFile { try RunFiles.checkReadable(caFile, option: "caFile") }
        trust = .allocate(capacity: 1)
        trust.initialize(to: fh_av_trust(verify: verify ? 1 : 0, ca_file: caFile.map { strdup($0) } ?? nil))
    }

    deinit {
        free(trust.pointee.ca_file)
        trust.deallocate()
    }

    /// Applies to everything that `context` opens, including segments of a playlist. This object must outlive it.
    func apply(to context: UnsafeMutablePointer<AVFormatContext>) { fh_av_apply(trust, context) }
}
