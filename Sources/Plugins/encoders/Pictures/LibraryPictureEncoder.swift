// SPDX-License-Identifier: Apache-2.0

import FrameCore
import PictureFiles
import Shared

/// Makes JPEG and PNG files by libjpeg-turbo, libpng and libyuv.
///
/// Several threads may use it at once: each call takes a state of its own, and returns it for the next.
final class LibraryPictureEncoder: PictureEncoder {
    static let info = ServiceInfo(id: "picture-encoder", summary: "Encodes pictures as JPEG and PNG.")

    /// The most states that are kept: one for each of two processors, and two more.
    static let mostIdle = 4
    private let idle = Locked<[PictureEncoderState]>([])

    init() { idle.withLock { $0.reserveCapacity(Self.mostIdle) } }

    /// [any thread but a stage's]
    ///
    /// - Throws: ``FrameHostError`` `.invalidConfiguration` for an impossible form, `.exhausted` for a picture that is
    ///   too large or where memory runs out, `.callFailed` with the library's words.
    func encode(_ picture: StagePicture, as form: PictureForm, takenAt: Int64?) throws -> [UInt8] {
        // Checked before anything is allocated.
        let plan = try PicturePlan(form, of: picture.format, lying: picture.orientation)
        let state = try idle.withLock { $0.popLast() } ?? PictureEncoderState()
        let file = try withExtendedLifetime(picture) {
            // Addresses leave their closures here. The picture is held until it is encoded, and only read.
            let stored = Picture(picture.format.pixelFormat, width: picture.format.width, height: picture.format.height)
            { index in
                picture.withPlane(index) { (UnsafeMutableRawPointer(mutating: $0.baseAddress), $0.strideBytes) }
            }
            return try state.make(stored, picture.format, plan, form, takenAt: takenAt)
        }
        state.trim()
        idle.withLock { if $0.count < Self.mostIdle { $0.append(state) } }
        return file
    }

    /// Bytes that are kept for the next pictures. [any thread] For tests.
    var idleBytes: Int { idle.withLock { $0.reduce(0) { $0 + $1.byteCount } } }
    var idleCount: Int { idle.withLock { $0.count } }
}
