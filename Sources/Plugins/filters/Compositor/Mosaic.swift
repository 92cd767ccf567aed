// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Shows several inputs in one picture, each with its newest one, at a rate of its own. An input that is late, freezes
/// or ends never holds up the others. docs/design/017-clocked-joins.md.
final class Mosaic: Join {
    static let info = StageInfo(
        id: "mosaic", summary: "Shows several inputs in one picture: as a grid, a row or picture in picture.",
        input: .video(.i420), output: .video(.i420), events: EventDeclaration.ofInputs)

    var options: MosaicOptions
    private let context: StageContext
    private var formats: InputFormats?
    private var cells: [Cell] = []
    private var background: Paint?
    private var slate: Paint?
    private var ink: Paint?
    private var watch = InputWatch(count: 0, patience: 1)
    private var tick = MediaTime.zero
    private let figures = Locked(Figures())

    private struct Figures {
        var missed = 0
        var isGood: [Bool] = []
    }

    private struct Cell {
        var input: Int
        var area: Rectangle
        var placement: UprightPlacement
        /// The input's id in characters of the font.
        var label: [UInt8]
    }

    /// [control thread] Opens nothing.
    init(options: MosaicOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        guard let formats else { return demand }
        demand.outputRate = formats.output.frameRate
        demand.cost = formats.output.cost(nanosecondsPerPixel: 2)
        return demand
    }

    /// [control thread]
    ///
    /// - Throws: ``FrameHostError`` for inputs that it does not take, and for places of inputs that do not exist.
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat {
        let formats = try InputFormats(
            inputs, size: options.size, rate: options.rate, context, stage: Self.info.id)
        self.formats = formats
        _ = try makeCells(formats)
        return .video(formats.output)
    }

    private func makeCells(_ formats: InputFormats) throws -> [Cell] {
        let ids = context.inputIDs
        let places = options.places.isEmpty ? options.layout.places(of: ids) : options.places
        return try places.enumerated().map { number, place in
            guard let input = ids.firstIndex(of: place.input) else {
                throw FrameHostError(
                    .invalidConfiguration, place: FaultPlace("places[\(number)].input"),
                    what: "'\(place.input)' must be an input of this stage",
                    remedy: "Use one of its inputs: \(ids.map { "'\($0)'" }.joined(separator: ", ")).")
            }
            let area = place.area(formats.output.width, formats.output.height)
            return Cell(
                input: input, area: area,
                placement: UprightPlacement(of: formats.inputs[input], into: area, options.fit, output: formats.output),
                label: Array(place.input.uppercased().utf8))
        }
    }

    /// [setup thread]
    func start() throws {
        guard let formats else { return }
        try prepare()
        watch = InputWatch(count: formats.inputs.count, patience: Int64(options.lostSeconds * 1e9))
        tick = formats.tick
        let ids = context.inputIDs
        figures.withLock { $0.isGood = ids.map { _ in true } }
        context.showFigures { [figures] in
            let now = figures.withLock { $0 }
            return [
                "missed": .number(now.missed),
                "inputs": InputWatch.figures(ids, now.isGood),
            ]
        }
    }

    private func prepare() throws {
        guard let formats else { return }
        cells = try makeCells(formats)
        background = Paint(options.background, for: formats.output)
        slate = Paint(options.slateColor, for: formats.output)
        ink = Paint(RGBColor(red: 0xd0, green: 0xd4, blue: 0xe0), for: formats.output)
    }

    /// [stage thread] One tick: one picture. Only waits for a free buffer; allocates nothing.
    func merge(_ inputs: JoinInputs, _ output: Output) throws {
        let now = inputs.time.nanoseconds
        // At the end of the run the inputs end one after the other. None of them is lost.
        for index in 0..<inputs.count where !context.isEnded && !inputs.followsTimes {
            guard let isLost = watch.note(index, of: inputs, now: now) else { continue }
            context.say(input: index, isLost: isLost)
            figures.withLock { $0.isGood[index] = !isLost }
        }
        if inputs.missed > 0 { figures.withLock { $0.missed += inputs.missed } }
        guard var result = try output.makeFrame() else { return }
        var newest: Int64 = 0
        result.withMutablePicture { target in
            if let background { target.fill(x: 0, y: 0, width: target.width, height: target.height, background) }
            for index in cells.indices {
                let cell = cells[index]
                let isNew = inputs.isNew(cell.input)
                // Where a source shows a substitute for its pictures, that is its slate. Other sources get the
                // slate of this stage.
                let state = watch.inputs[cell.input]
                if !state.wasLost || (state.isSubstitute && !state.hasEnded),
                    case .frame(let frame)? = inputs.peek(cell.input)
                {
                    if isNew { newest = max(newest, frame.capturedAt) }
                    let orientation = frame.orientation
                    frame.withPicture { cells[index].placement.draw($0, orientation, into: target) }
                } else {
                    drawSlate(cell, into: target)
                }
            }
        }
        result.pts = inputs.time
        result.duration = tick
        result.capturedAt = newest > 0 ? newest : inputs.followsTimes ? context.clock.now() : now
        try output.emit(result)
    }

    private func drawSlate(_ cell: Cell, into target: Picture) {
        guard let slate, let ink else { return }
        let area = cell.area
        target.fill(x: area.x, y: area.y, width: area.width, height: area.height, slate)
        // As large as possible, but at most an eighth of the height.
        var scale = max(area.height / 72, 1) & ~1
        scale = max(scale, 2)
        let box = BitmapFont.box(characters: cell.label.count, scale: scale)
        guard box.width <= area.width, box.height <= area.height else { return }
        cell.label.withUnsafeBufferPointer { label in
            _ = target.draw(
                label, x: (area.x + (area.width - box.width) / 2) & ~1,
                y: (area.y + (area.height - box.height) / 2) & ~1,
                scale: scale, ink: ink, ground: slate)
        }
    }

    /// [stage thread] Takes effect with the next picture.
    ///
    /// - Throws: ``FrameHostError`` for places of inputs that do not exist.
    func optionsChanged() throws { try prepare() }

    /// [stage thread]
    func stop() { cells = [] }
}
