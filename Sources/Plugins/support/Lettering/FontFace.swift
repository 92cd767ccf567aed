// SPDX-License-Identifier: Apache-2.0

import CFreeType
import FrameCore
import FrameSupport
import Glibc

/// A font opened by FreeType at one size: the only file that imports it.
///
/// Not thread-safe; each stage has its own. What FreeType allocates is freed in `deinit`; glyphs are copied out of it.
/// - SeeAlso: FT_New_Memory_Face, FT_Set_Pixel_Sizes, FT_Load_Glyph, FT_Glyph_StrokeBorder (FreeType 2 API reference).
package final class FontFace {
    /// The file's bytes, which FreeType reads for as long as the face lives. Not mapped: a file that somebody shortens
    /// meanwhile would end the process.
    private let bytes: UnsafeMutableRawBufferPointer
    private let library: FT_Library
    private let face: FT_Face
    private let stroker: FT_Stroker
    package let path: String
    /// Pixels of the em square.
    private(set) var size = 0
    /// Width of the line around letters, in pixels.
    private(set) var outline = 0.0

    /// - Throws: ``FrameHostError`` for a file that is not a font, or a font without outlines or without Unicode
    ///   characters.
    package init(path: String) throws {
        self.path = path
        var library: FT_Library?
        var face: FT_Face?
        var stroker: FT_Stroker?
        let bytes = try Self.contents(of: path)
        var isKept = false
        defer { if !isKept { bytes.deallocate() } }
        try Self.check(FT_Init_FreeType(&library), path, "FreeType could not be started", remedy: Self.freeMemory)
        let error = FT_New_Memory_Face(
            library, bytes.baseAddress?.assumingMemoryBound(to: FT_Byte.self), FT_Long(bytes.count), 0, &face)
        guard error == 0, let face else {
            FT_Done_FreeType(library)
            throw FrameHostError(
                .invalidMedia, place: "font", what: "'\(path)' must be a font that FreeType can read",
                remedy: "Name a TrueType, OpenType or Type 1 font file.")
        }
        guard face.pointee.face_flags & Int(FT_FACE_FLAG_SCALABLE) != 0, face.pointee.charmap != nil else {
            let lacks = face.pointee.charmap == nil ? "no Unicode characters" : "only bitmaps of fixed sizes"
            FT_Done_FreeType(library)
            throw FrameHostError(
                .invalidMedia, place: "font", what: "\(path) has \(lacks)",
                remedy: "Name a font with outlines and Unicode characters, such as DejaVuSans.ttf.")
        }
        do {
            try Self.check(
                FT_Stroker_New(library, &stroker), path, "not enough memory for outlines", remedy: Self.freeMemory)
        } catch {
            FT_Done_FreeType(library)
            throw error
        }
        isKept = true
        self.bytes = bytes
        self.library = library!
        self.face = face
        self.stroker = stroker!
    }

    deinit {
        FT_Stroker_Done(stroker)
        FT_Done_FreeType(library)
        bytes.deallocate()
    }

    private static let mostBytes = 256 << 20

    private static func contents(of path: String) throws -> UnsafeMutableRawBufferPointer {
        func fault(
            _ what: String, remedy: String = "Name a TrueType, OpenType or Type 1 font file."
        ) -> FrameHostError {
            FrameHostError(
                .invalidMedia, place: "font", what: "'\(path)' \(what)", remedy: remedy)
        }
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else {
            let code = errno
            throw fault(
                "cannot be read: \(String(cString: strerror(code)))",
                remedy: code == EMFILE || code == ENFILE
                    ? "Raise the limit of open files (ulimit -n)."
                    : "Check the file and the disk that it is on, or name another font file with 'font'.")
        }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            (1...mostBytes).contains(Int(status.st_size))
        else { throw fault("must be a regular file of 1 byte to \(mostBytes >> 20) MB") }
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: Int(status.st_size), alignment: 16)
        guard Transfer.read(into: bytes, from: file).count == bytes.count else {
            bytes.deallocate()
            throw fault(
                "cannot be read to its end",
                remedy: "Check the disk that it is on, or name another font file with 'font'.")
        }
        return bytes
    }

    private static let freeMemory = "Free some memory on this machine, and try again."

    private static func check(
        _ error: FT_Error, _ path: String, _ what: String, remedy: String = "Name another font file with 'font'."
    ) throws {
        guard error != 0 else { return }
        throw FrameHostError(
            .callFailed, place: "font", what: "\(path): \(what) (FreeType error \(error))", remedy: remedy)
    }

    // MARK: Size

    /// - Parameters:
    ///   - size: Pixels of the em square, at least 1.
    ///   - outline: Pixels; 0 for none.
    func set(size: Int, outline: Double) throws {
        try Self.check(FT_Set_Pixel_Sizes(face, 0, UInt32(size)), path, "FreeType refuses letters of \(size) pixels")
        self.size = size
        self.outline = outline
        FT_Stroker_Set(
            stroker, FT_Fixed((outline * 64).rounded()), FT_STROKER_LINECAP_ROUND, FT_STROKER_LINEJOIN_ROUND, 0)
    }

    /// From the top of a line to its base line, in pixels.
    var ascender: Int { (Int(face.pointee.size.pointee.metrics.ascender) + 63) >> 6 }
    /// From the base line to the bottom of a line, in pixels.
    var descender: Int { (63 - Int(face.pointee.size.pointee.metrics.descender)) >> 6 }
    /// From one base line to the next, in pixels.
    var lineHeight: Int { max((Int(face.pointee.size.pointee.metrics.height) + 32) >> 6, 1) }

    /// How far two neighbours move closer (less than 0) or apart, in 64ths of a pixel.
    func kerning(_ left: Glyph, _ right: Glyph) -> Int {
        guard face.pointee.face_flags & Int(FT_FACE_FLAG_KERNING) != 0, left.index != 0, right.index != 0 else {
            return 0
        }
        var vector = FT_Vector()
        FT_Get_Kerning(face, left.index, right.index, FT_KERNING_DEFAULT.rawValue, &vector)
        return Int(vector.x)
    }

    // MARK: Glyphs

    /// The glyph of a character; a box where the font has none. Allocates, so keep the result.
    func glyph(_ character: UInt32) throws -> Glyph {
        let index = FT_Get_Char_Index(face, FT_ULong(character))
        guard index != 0 else {
            let box = GlyphBitmap.missing(em: size)
            return Glyph(
                index: 0, ink: box, edge: outline > 0 ? box.surrounded(by: Int(outline.rounded(.up))) : nil,
                advance: (box.width + 2 * box.left) << 6)
        }
        let flags = Int32(FT_LOAD_DEFAULT) | Int32(FT_LOAD_NO_BITMAP)
        try Self.check(FT_Load_Glyph(face, index, flags), path, "glyph \(index) could not be loaded")
        let advance = Int(face.pointee.glyph.pointee.advance.x)
        let ink = try bitmap { _ in 0 }
        let edge = try outline > 0 ? bitmap { FT_Glyph_StrokeBorder(&$0, self.stroker, 0, 1) } : nil
        return Glyph(index: index, ink: ink, edge: edge, advance: advance)
    }

    /// Coverage of the loaded glyph after `change`; nil where nothing is covered.
    private func bitmap(_ change: (inout FT_Glyph?) -> FT_Error) throws -> GlyphBitmap? {
        var glyph: FT_Glyph?
        try Self.check(
            FT_Get_Glyph(face.pointee.glyph, &glyph), path, "not enough memory for a letter", remedy: Self.freeMemory)
        defer { FT_Done_Glyph(glyph) }
        try Self.check(change(&glyph), path, "a letter cannot be outlined")
        try Self.check(FT_Glyph_To_Bitmap(&glyph, FT_RENDER_MODE_NORMAL, nil, 1), path, "a letter cannot be drawn")
        return UnsafeMutableRawPointer(glyph!).withMemoryRebound(to: FT_BitmapGlyphRec.self, capacity: 1) { drawn in
            let source = drawn.pointee.bitmap
            let (width, height) = (Int(source.width), Int(source.rows))
            guard width > 0, height > 0, let buffer = source.buffer else { return nil }
            // Rows go downwards in memory where the pitch is above 0, as in all that FreeType draws here.
            let coverage = (0..<height).flatMap {
                UnsafeBufferPointer(start: buffer + $0 * Int(source.pitch), count: width)
            }
            return GlyphBitmap(
                left: Int(drawn.pointee.left), top: Int(drawn.pointee.top), width: width, height: height,
                coverage: coverage)
        }
    }
}
