// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Lettering
import Shared

/// Writes a text into the picture, in place: date and clock, frame number, time, rate, or any words.
///
/// Letters are FreeType's; text and box are blended by their opacity. The text is drawn again only when it changes.
final class TextOverlay: Filter {
    static let info = StageInfo(
        id: "text", summary: "Writes date, time, frame number, rate or any text into the picture.",
        input: .video(.i420, .nv12, .bgra, .rgb24, .gray8), output: .sameAsInput, access: .modify)

    var options: TextOptions
    private let context: StageContext
    private var format: VideoFormat?
    private var layout: TextLayout?
    private var values: TextValues
    private var overlay: Overlay?
    private let mask = CoverageMask()
    private let turned = CoverageMask()
    /// The orientation of the pictures so far, and so of the overlay.
    private var orientation = Orientation.up
    private var motion: MetadataSlot<Motion>?
    private var isStale = true
    /// How often the text was drawn.
    private(set) var drawCount = 0

    /// [control thread] Opens nothing.
    init(options: TextOptions, context: StageContext) {
        self.options = options
        self.context = context
        values = Self.values(options, context)
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.readsFiles =
            (try? FontFile.path(options.font.map(context.resolve))).map { [$0] } ?? context.filesRead(options.font)
        if options.text.parts.contains(.frame) {
            demand.warmUp = .never("writes the numbers of frames, which start again in each part")
        } else if options.text.parts.contains(.fps) {
            demand.warmUp = .never("writes the rate, which is measured again in each part")
        }
        return demand
    }

    private static func values(_ options: TextOptions, _ context: StageContext) -> TextValues {
        TextValues(options.text, name: options.name ?? context.stageID, chain: context.chainName, isUTC: options.utc)
    }

    /// [control thread] Opens the font.
    ///
    /// - Throws: ``FrameHostError`` when there is no font, or the file is not a font.
    func negotiate(_ format: VideoFormat) throws {
        self.format = format
        let face = try FontFace(path: FontFile.path(options.font.map(context.resolve)))
        if options.font == nil, !face.path.hasSuffix("/DejaVuSans.ttf") {
            context.note(
                "uses \(face.path), because the default font DejaVu Sans is not installed. Install fonts-dejavu-core, or name a font file with 'font'",
                isWarning: true)
        }
        layout = TextLayout(face) { [context] character in
            let code = String(character, radix: 16, uppercase: true)
            let name = Unicode.Scalar(character).map { "'\($0)' (U+\(code))" } ?? "U+\(code)"
            context.log(
                "\(context.stageID): \(face.path) has no character \(name); a box is shown instead. Set 'font' to a font file that has this character.",
                level: .warning)
        }
    }

    /// [control thread] Makes the overlay.
    func start() throws {
        overlay = format.map(Overlay.init)
        motion = context.slot(for: Motion.self)
        isStale = true
    }

    /// [stage thread] Blends the text, and draws it first when it has changed. Allocates only when it draws, and no
    /// longer once it has drawn texts of this length with these letters.
    func process(_ frame: inout Frame) throws -> Verdict {
        let hasChanged = values.update(
            pts: frame.pts.nanoseconds, frame: frame.sequenceNumber,
            unixTime: context.clock.unixTime(at: frame.capturedAt), motion: motion.flatMap { frame[$0] })
        if hasChanged || isStale || frame.orientation != orientation {
            orientation = frame.orientation
            try draw()
            isStale = false
        }
        if let overlay { frame.withMutablePicture { overlay.blend(onto: $0) } }
        return .forward
    }

    /// [stage thread] Live options take effect with the next frame.
    func optionsChanged() throws {
        var values = Self.values(options, context)
        values.takeRate(from: self.values)
        self.values = values
        isStale = true
    }

    /// [stage thread] Frees what `start` and `negotiate` made.
    func stop() {
        overlay = nil
        layout = nil
    }

    private func draw() throws {
        guard let format, let layout, let overlay else { return }
        drawCount += 1
        let stored = PictureSize(format.width, format.height)
        let shown = stored.turned(by: orientation)
        let size = min(max(Int(options.size.pixels(of: shown.height).rounded()), 1), Self.largestFont)
        try layout.set(size: size, outline: min(options.outline.pixels(of: size), Double(size)))
        try layout.lay(values.text, align: options.align)
        let padding = options.box ? max(Int(options.boxPadding.pixels(of: size).rounded()), 0) : 0
        // Even, so that the box ends between chroma samples.
        func even(_ length: Int) -> Int { length + length % 2 }
        let box = options.position.place(
            PictureSize(even(layout.width + 2 * padding), even(layout.height + 2 * padding)), margin: options.margin,
            in: shown, step: 2)
        let visible = box.clipped(to: shown)
        guard !visible.isEmpty, !layout.placed.isEmpty else { return overlay.clear() }
        mask.reset(width: visible.width, height: visible.height)
        mask.draw(layout.placed, x: box.x + padding - visible.x, y: box.y + padding - visible.y)
        mask.turn(to: orientation, scratch: turned)
        overlay.set(mask, part: orientation.stored(visible, shown: shown), style: style(format))
    }

    /// The largest letters: FreeType's coordinates allow no more.
    private static let largestFont = 4096

    private func style(_ format: VideoFormat) -> Overlay.Style {
        Overlay.Style(
            box: Paint(options.boxColor, for: format), edge: Paint(options.outlineColor, for: format),
            ink: Paint(options.color, for: format), boxOpacity: options.box ? Float(options.boxOpacity) : 0,
            inkOpacity: Float(options.opacity))
    }
}
