// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared
import Stills

/// Lays a picture with transparency over the pictures, in place.
///
/// It is scaled and brought into the samples of the format when it, its place or the way the frames lie changes; a frame
/// costs the blending. docs/design/044-stills.md.
final class PictureOverlay: Filter {
    static let info = StageInfo(
        id: "picture-overlay",
        summary: "Lays a picture with transparency over the pictures: a logo, a border, a watermark.",
        input: .video(.i420, .nv12, .bgra, .rgb24, .gray8), output: .sameAsInput, access: .modify, events: events)

    var options: PictureOverlayOptions
    private let context: StageContext
    private var format: VideoFormat?
    private var still: StillPicture?
    /// The option `path` as it was when ``still`` was named.
    private var shownPath: String
    /// The path that was named last. It differs from ``shownPath`` while its file is being read.
    private var wantedPath: String
    private var scaled: ScaledPicture?
    private var layers: PictureLayers?
    private let reader = PictureReader()
    /// How the frames so far lie, and so the picture.
    private var orientation = Orientation.up
    private var isStale = true
    /// How often the picture was scaled on the stage thread.
    private(set) var scaleCount = 0

    /// [control thread] Opens nothing.
    init(options: PictureOverlayOptions, context: StageContext) {
        self.options = options
        self.context = context
        (shownPath, wantedPath) = (options.path, options.path)
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.readsFiles = context.filesRead(options.path)
        return demand
    }

    /// [control thread] Reads the picture.
    ///
    /// - Throws: ``FrameHostError`` `.unavailable` for a file that cannot be read, or is neither PNG nor JPEG.
    func negotiate(_ format: VideoFormat) throws {
        self.format = format
        still = try StillPicture(context.resolve(options.path), option: "path")
        (shownPath, wantedPath) = (options.path, options.path)
    }

    /// [setup thread] Brings the picture into its size and the format's samples.
    func start() throws {
        guard let format else { return }
        layers = PictureLayers(format)
        orientation = format.orientation
        draw()
    }

    /// [stage thread] Blends the picture. Allocates nothing, except where the picture, its place or the way the frames
    /// lie has changed.
    func process(_ frame: inout Frame) throws -> Verdict {
        if let answer = reader.take() { accept(answer) }
        if isStale || frame.orientation != orientation {
            orientation = frame.orientation
            draw()
        }
        if let layers { frame.withMutablePicture { layers.blend(onto: $0) } }
        return .forward
    }

    /// [stage thread] Place, size and opacity take effect with the next frame, another picture when it has been read.
    func optionsChanged() throws {
        isStale = true
        guard options.path != wantedPath else { return }
        if options.path == shownPath {
            reader.forget()
        } else if let format {
            try reader.read(context.resolve(options.path)) { [options, orientation] still in
                ScaledPicture(still, at: still.placement(options, on: format, lying: orientation))
            }
        }
        wantedPath = options.path
    }

    /// [stage thread] Frees what `start` and `negotiate` made.
    func stop() {
        reader.forget()
        (still, scaled, layers) = (nil, nil, nil)
    }

    private func accept(_ answer: Result<PictureReader.Reading, PictureReader.Refusal>) {
        switch answer {
        case .success(let reading):
            (still, scaled) = (reading.still, reading.scaled)
            shownPath = wantedPath
            isStale = true
            context.post(
                "picture-changed", text: "Shows the picture \(reading.path).", details: ["path": .string(reading.path)])
        case .failure(let refusal):
            wantedPath = shownPath
            options.path = shownPath
            let fault = refusal.fault
            context.post(
                "picture-refused", level: .warning,
                text: "Goes on showing \(shownPath), because \(fault.what). \(fault.remedy)",
                details: ["path": .string(refusal.path), "reason": .string(fault.what)])
        }
    }

    private func draw() {
        isStale = false
        guard let format, let still, let layers else { return }
        let placement = still.placement(options, on: format, lying: orientation)
        if scaled?.placement != placement {
            scaleCount += 1
            scaled = ScaledPicture(still, at: placement)
        }
        if let scaled { layers.set(scaled, opacity: options.opacity) }
    }
}

extension StillPicture {
    fileprivate func placement(
        _ options: PictureOverlayOptions, on format: VideoFormat, lying orientation: Orientation
    ) -> OverlayPlacement {
        OverlayPlacement(options, picture: PictureSize(width, height), on: format, lying: orientation)
    }
}
