/// Makes a file's bytes of a picture. A plugin's class, loaded when first needed.
///
/// Used by several threads at once.
public protocol PictureEncoder: AnyObject, Sendable, SendableMetatype {
    /// What it is; the same for every instance.
    static var info: ServiceInfo { get }

    init()

    /// [any thread but a stage's] Upright, scaled, cut and turned as `form` says; colours as the picture's
    /// ``ColorDescription`` says.
    ///
    /// - Parameters:
    ///   - picture: The picture, as the stage gave it.
    ///   - form: Size, shape and file format.
    ///   - takenAt: Wall-clock time of the picture, nanoseconds since 1970: the EXIF time stamp. Nil writes none.
    /// - Returns: The bytes of the file.
    /// - Throws: ``FrameHostError``.
    func encode(_ picture: StagePicture, as form: PictureForm, takenAt: Int64?) throws -> [UInt8]
}

/// How a picture is to look in its file.
public struct PictureForm: Sendable, Hashable {
    public enum Kind: String, Sendable, CaseIterable { case jpeg, png }

    /// How a picture of another shape is brought into `width` × `height`.
    public enum Fit: String, Sendable, CaseIterable {
        /// Covers all of it; what stands over is cut, evenly on both sides.
        case fill
        /// All of it on a grey background.
        case fit
    }

    public var kind = Kind.jpeg
    /// Pixels of the file's picture; nil: as the picture, or by its shape where the other is given. 1...16384.
    public var width: Int?
    public var height: Int?
    public var fit = Fit.fit
    /// Further quarter turns clockwise, after it was brought upright. 0...3.
    public var quarterTurns = 0
    /// Left and right are exchanged, last of all.
    public var isMirrored = false
    /// JPEG only, 1...100.
    public var quality = 90

    public init(_ kind: Kind = .jpeg) { self.kind = kind }

    /// Pixels that either side of the file's picture may have.
    public static let sides = 1...16_384
}

/// A kind of picture encoder without its Swift type.
public final class PictureEncoderType: Sendable {
    public let info: ServiceInfo
    /// [any thread]
    public let make: @Sendable () -> any PictureEncoder

    public init<E: PictureEncoder>(_ type: E.Type) {
        info = E.info
        make = { E() }
    }
}
