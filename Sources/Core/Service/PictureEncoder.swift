// SPDX-License-Identifier: Apache-2.0

/// Encodes single pictures as files. A plugin's class, which the host loads when it is first needed.
///
/// Several threads use it at once.
public protocol PictureEncoder: AnyObject, Sendable, SendableMetatype {
    /// What the encoder is; the same for every instance.
    static var info: ServiceInfo { get }

    /// Makes the encoder.
    init()

    /// [any thread but a stage's] Makes the bytes of a file.
    ///
    /// The picture in the file stands upright, and is scaled, cut and turned as `form` says. Its colours follow the
    /// picture's ``ColorDescription``.
    ///
    /// - Parameters:
    ///   - picture: The picture, as the stage gave it.
    ///   - form: Size, shape and file format.
    ///   - takenAt: Wall-clock time of the picture, nanoseconds since 1970: the EXIF time stamp. Nil writes none.
    /// - Returns: The bytes of the file.
    /// - Throws: ``FrameHostError``.
    func encode(_ picture: StagePicture, as form: PictureForm, takenAt: Int64?) throws -> [UInt8]
}

/// How a picture looks in its file.
public struct PictureForm: Sendable, Hashable {
    /// The format of the file.
    public enum Kind: String, Sendable, CaseIterable {
        /// JPEG, with loss.
        case jpeg
        /// PNG, without loss.
        case png
    }

    /// How a picture of another shape is brought into `width` × `height`.
    public enum Fit: String, Sendable, CaseIterable {
        /// The picture covers the whole area; what extends beyond it is cut, evenly on both sides.
        case fill
        /// The whole picture stands on a grey background.
        case contain
    }

    /// The format of the file.
    public var kind = Kind.jpeg
    /// Width in the file, 1...16384 pixels. Nil means the width of the picture, or the width that ``height`` and
    /// the picture's shape give.
    public var width: Int?
    /// Height in the file, 1...16384 pixels. Nil means the height of the picture, or the height that ``width`` and
    /// the picture's shape give.
    public var height: Int?
    /// How a picture of another shape is brought into ``width`` × ``height``.
    public var fit = Fit.contain
    /// Quarter turns clockwise after the picture was brought upright, 0...3.
    public var quarterTurns = 0
    /// Whether left and right are exchanged, as the last step.
    public var isMirrored = false
    /// The quality of a JPEG file, 1...100.
    public var quality = 90

    /// A file of this format in the size of the picture.
    public init(_ kind: Kind = .jpeg) { self.kind = kind }

    /// The range of either side in the file, in pixels.
    public static let sides = 1...16_384
    /// The rotations that a request may ask for, in degrees clockwise. ``quarterTurns`` is one of them divided by 90.
    public static let rotations = [0, 90, 180, 270]
}

/// A kind of picture encoder without its Swift type.
public final class PictureEncoderType: Sendable {
    /// What the encoder says of itself.
    public let info: ServiceInfo
    /// [any thread] Makes an encoder.
    public let make: @Sendable () -> any PictureEncoder

    /// The kind of encoder that a Swift type stands for.
    public init<E: PictureEncoder>(_ type: E.Type) {
        info = E.info
        make = { E() }
    }
}
