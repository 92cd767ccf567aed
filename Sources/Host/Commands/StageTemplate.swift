// SPDX-License-Identifier: Apache-2.0

/// What a new package has in it for one stage type; STAGEID and STAGETYPE stand for its id and type, STAGEOPTION for the
/// name of its main option.
struct StageTemplate {
    /// The name of its main option, unless another is asked for.
    var option: String
    /// Names of its other options.
    var otherOptions: [String] = []
    /// One sentence that begins with a small letter.
    var summary: String
    /// The stage's type, without imports and entry.
    var source: String
    /// Functions of its suite.
    var test: String
    /// The stages of a chain that runs it.
    var chain: String
    /// Rows of the README's table.
    var options: String
}

extension StageTemplate {
    // MARK: Source

    static let source = StageTemplate(
        option: "frames", otherOptions: ["size", "rate"],
        summary: "gives grey pictures that grow lighter.",
        source: ##"""
            import FrameCore

            /// Gives grey pictures that grow lighter, from black to white.
            ///
            /// GRAY8, as fast as they are taken.
            public final class STAGETYPE: Source {
                public static let info = StageInfo(id: "STAGEID", summary: "Gives grey pictures that grow lighter.", output: .video(.gray8))

                public struct Options: StageOptions {
                    @Option(help: "Size of the pictures.", unit: "px") public var size = PictureSize(640, 360)
                    @Option(help: "Frames per second.") public var rate = FrameRate(30)
                    @Option(help: "Ends after this many frames.", range: 2...1_000_000) public var STAGEOPTION = 90

                    public init() {}
                }

                public var options: Options
                private var count = 0

                /// [control thread] Opens nothing; options arrive checked.
                public init(options: Options, context: StageContext) { self.options = options }

                /// How many frames will come, for the progress line.
                public var demand: StageDemand {
                    var demand = Self.declaredDemand
                    demand.expectedItems = options.STAGEOPTION
                    return demand
                }

                /// [control thread]
                public func negotiate() -> MediaFormat {
                    .video(VideoFormat(.gray8, width: options.size.width, height: options.size.height, frameRate: options.rate.rational))
                }

                /// [stage thread] One frame a call. Waits only for a free buffer.
                public func produce(_ output: Output) throws -> SourceProgress {
                    guard count < options.STAGEOPTION else { return .ended }
                    // Nil: no buffer is free, in a live source only.
                    guard var frame = try output.makeFrame() else { return .more }
                    let grey = count * 255 / (options.STAGEOPTION - 1)
                    // A luma that is given as it is; Paint(RGBColor(…), for: frame.format) makes one of a colour.
                    let paint = Paint(luma: grey, u: 128, v: 128, in: frame.format.pixelFormat)
                    frame.withCanvas { canvas in
                        canvas.fill(x: 0, y: 0, width: canvas.width, height: canvas.height, paint)
                    }
                    frame.pts = MediaTime(seconds: Double(count) / options.rate.rational.value)
                    count += 1
                    try output.emit(frame)
                    return .more
                }
            }
            """##,
        test: ##"""
                @Test func endsWithWhite() throws {
                    let driver = try StageDriver(STAGETYPE.self, options: #"{ "size": "16x16", "STAGEOPTION": 3 }"#)
                    var greys: [UInt8] = []
                    while try driver.produce() == .more {
                        guard let frame = driver.takeFrame() else { break }
                        greys.append(frame.withPlane(0) { $0.row(15)[15] })
                    }
                    #expect(greys == [0, 127, 255])
                }

                @Test func countsTimeByItsRate() throws {
                    let driver = try StageDriver(STAGETYPE.self, options: #"{ "rate": 25 }"#)
                    var times: [Double] = []
                    for _ in 0..<3 {
                        _ = try driver.produce()
                        if let frame = driver.takeFrame() { times.append(frame.pts.seconds) }
                    }
                    #expect(times == [0, 0.04, 0.08])
                }
            """##,
        chain: ##"""
                { "use": "STAGEID", "STAGEOPTION": 90 },
                { "use": "null-sink" }
            """##,
        options: ##"""
            | `size` | size | `"640x360"` | px | | Size of the pictures. |
            | `rate` | frame rate | 30 | | | Frames per second. |
            | `STAGEOPTION` | integer | 90 | 2...1000000 | | Ends after this many frames. |
            """##)

    // MARK: Filter

    static let filter = StageTemplate(
        option: "strength",
        summary: "darkens the picture.",
        source: ##"""
            import FrameCore

            /// Darkens the picture.
            ///
            /// Takes and gives I420, NV12 or GRAY8; works on the luma plane in place. Size, PTS and metadata pass
            /// through unchanged.
            public final class STAGETYPE: Filter {
                public static let info = StageInfo(
                    id: "STAGEID", summary: "Darkens the picture.",
                    input: .video(.i420, .nv12, .gray8), output: .sameAsInput, access: .modify)

                public struct Options: StageOptions {
                    @Option(help: "How much brightness is taken away: 0 none, 1 all.", range: 0...1, live: true)
                    public var STAGEOPTION = 0.5

                    public init() {}
                }

                public var options: Options

                /// [control thread] Opens nothing; options arrive checked.
                public init(options: Options, context: StageContext) { self.options = options }

                /// [stage thread] One frame in, the same frame out. Does not block or allocate.
                public func process(_ frame: inout Frame) throws -> Verdict {
                    let factor = Int((1 - options.STAGEOPTION) * 256)
                    let black = frame.format.color.range == .full ? 0 : 16
                    frame.withMutablePlane(0) { luma in
                        for y in 0..<luma.height {
                            luma.withRow(y) { row in
                                for x in row.indices { row[x] = UInt8(black + (max(Int(row[x]), black) - black) * factor / 256) }
                            }
                        }
                    }
                    return .forward
                }
            }
            """##,
        test: ##"""
                @Test func halvesTheLuma() throws {
                    let format = VideoFormat(.i420, width: 64, height: 48, frameRate: Rational(30))
                    let driver = try StageDriver(STAGETYPE.self, options: #"{ "STAGEOPTION": 0.5 }"#, input: .video(format))
                    try driver.send(
                        driver.makeFrame { frame in
                            frame.withMutablePlane(0) { luma in
                                for y in 0..<luma.height { luma.row(y).update(repeating: 216) }
                            }
                        })
                    guard let frame = driver.takeFrame() else {
                        Issue.record("no frame came out")
                        return
                    }
                    let sample = frame.withPlane(0) { $0.row(0)[0] }
                    #expect(sample == 116)
                }

                @Test func refusesAValueAboveOne() {
                    let refusal = #expect(throws: FrameHostErrors.self) {
                        try StageDriver(STAGETYPE.self, options: #"{ "STAGEOPTION": 2 }"#, input: .video(VideoFormat(.i420, width: 2, height: 2)))
                    }
                    // Why, too: an option of another name is refused as well.
                    #expect(refusal?.description.contains("STAGEOPTION: 2 must be from 0 to 1") == true)
                }
            """##,
        chain: ##"""
                { "use": "test-source", "size": "640x360", "rate": 30, "frames": 90 },
                { "use": "STAGEID", "STAGEOPTION": 0.5 },
                { "use": "null-sink" }
            """##,
        options: ##"""
            | `STAGEOPTION` | number | 0.5 | 0...1 | yes | How much brightness is taken away: 0 none, 1 all. |
            """##)

    // MARK: Transform

    static let transform = StageTemplate(
        option: "frames",
        summary: "shows what has changed since an earlier frame.",
        source: ##"""
            import FrameCore

            /// Shows what has changed since an earlier frame: black where nothing has.
            ///
            /// Takes and gives GRAY8. Keeps the frames in between, at most 30; size, PTS and metadata pass through
            /// unchanged.
            public final class STAGETYPE: Transform {
                public static let info = StageInfo(
                    id: "STAGEID", summary: "Shows what has changed since an earlier frame.",
                    input: .video(.gray8), output: .video(.gray8), hold: 30)

                public struct Options: StageOptions {
                    @Option(help: "Compares with the frame this many frames earlier.", range: 1...30) public var STAGEOPTION = 1

                    public init() {}
                }

                public var options: Options
                private var last = FrameRing(capacity: 0)

                /// [control thread] Opens nothing; options arrive checked.
                public init(options: Options, context: StageContext) { self.options = options }

                /// Keeps `STAGEOPTION` frames, often fewer than `info` declares; the plan makes that many more buffers.
                public var demand: StageDemand {
                    var demand = Self.declaredDemand
                    demand.hold = options.STAGEOPTION
                    return demand
                }

                /// [control thread] The pictures that go out are like those that come in.
                public func negotiate(_ input: MediaFormat) -> MediaFormat { input }

                /// [control thread] Makes room.
                public func start() { last = FrameRing(capacity: options.STAGEOPTION) }

                /// [stage thread] One frame in, one out. Waits only for a free buffer; does not allocate.
                public func process(_ input: consuming Sample, _ output: Output) throws {
                    guard case .frame(let frame) = consume input else { return output.drop(.byStage) }
                    guard var result = try output.makeFrame() else { return }
                    // What stood before a gap, and a slate in place of a camera's picture, are nothing to compare with.
                    if frame.isDiscontinuity || frame.isSubstitute { last.removeAll() }
                    // Nil: not enough frames have come yet.
                    let found: Void? = last.withFrame(age: options.STAGEOPTION - 1) { earlier in
                        result.withMutablePlane(0) { target in
                            frame.withPlane(0) { now in
                                earlier.withPlane(0) { before in
                                    for y in 0..<target.height {
                                        let (row, a, b) = (target.row(y), now.row(y), before.row(y))
                                        for x in row.indices { row[x] = max(a[x], b[x]) - min(a[x], b[x]) }
                                    }
                                }
                            }
                        }
                    }
                    if found == nil {
                        result.withMutablePlane(0) { target in
                            for y in 0..<target.height { target.row(y).update(repeating: 0) }
                        }
                    }
                    result.copyProperties(from: frame)
                    if !frame.isSubstitute { last.append(frame) }
                    try output.emit(result)
                }

                /// [stage thread] Lets go of all frames.
                public func stop() { last.removeAll() }
            }
            """##,
        test: ##"""
                private func send(
                    _ grey: UInt8, to driver: StageDriver<STAGETYPE>, isAfterGap: Bool = false, isSlate: Bool = false
                ) throws -> UInt8? {
                    try driver.send(
                        driver.makeFrame { frame in
                            frame.isDiscontinuity = isAfterGap
                            frame.isSubstitute = isSlate
                            frame.withMutablePlane(0) { plane in
                                for y in 0..<plane.height { plane.row(y).update(repeating: grey) }
                            }
                        })
                    guard let frame = driver.takeFrame() else { return nil }
                    return frame.withPlane(0) { $0.row(0)[0] }
                }

                @Test func showsTheDifferenceToTheFrameBefore() throws {
                    let driver = try StageDriver(STAGETYPE.self, input: .video(VideoFormat(.gray8, width: 16, height: 16)))
                    let given = try [100, 130, 120].map { try send($0, to: driver) }
                    #expect(given == [0, 30, 10])
                }

                @Test func comparesNothingAcrossAGapOrWithASlate() throws {
                    let driver = try StageDriver(STAGETYPE.self, input: .video(VideoFormat(.gray8, width: 16, height: 16)))
                    let given = [
                        try send(100, to: driver), try send(130, to: driver, isAfterGap: true), try send(140, to: driver),
                        try send(50, to: driver, isSlate: true), try send(150, to: driver), try send(155, to: driver),
                    ]
                    #expect(given == [0, 0, 10, 0, 0, 5])
                }

                @Test func keepsNoMoreFramesThanItSays() throws {
                    let driver = try StageDriver(STAGETYPE.self, options: #"{ "STAGEOPTION": 3 }"#, input: .video(VideoFormat(.gray8, width: 16, height: 16)))
                    for grey in 0..<10 { _ = try send(UInt8(grey), to: driver) }
                    #expect(driver.keptBuffers == 3)
                    try driver.stop()
                    #expect(driver.keptBuffers == 0)
                }
            """##,
        chain: ##"""
                { "use": "test-source", "size": "640x360", "rate": 30, "frames": 90, "pattern": "balls" },
                { "use": "STAGEID", "STAGEOPTION": 2 },
                { "use": "null-sink" }
            """##,
        options: ##"""
            | `STAGEOPTION` | integer | 1 | 1...30 | | Compares with the frame this many frames earlier. |
            """##)

    // MARK: Join

    static let join = StageTemplate(
        option: "share",
        summary: "mixes two pictures.",
        source: ##"""
            import FrameCore

            /// Mixes two pictures of one size.
            ///
            /// Takes and gives GRAY8. Metadata is that of the first input, the time that of the one that leads.
            public final class STAGETYPE: Join {
                public static let info = StageInfo(
                    id: "STAGEID", summary: "Mixes two pictures.", input: .video(.gray8), output: .video(.gray8))

                public struct Options: StageOptions {
                    @Option(help: "How much of the second picture: 0 only the first, 1 only the second.", range: 0...1, live: true) public var STAGEOPTION = 0.5

                    public init() {}
                }

                public var options: Options

                /// [control thread] Opens nothing; options arrive checked.
                public init(options: Options, context: StageContext) { self.options = options }

                /// [control thread] In the order of "from".
                public func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat {
                    guard inputs.count == 2, let first = inputs[0].video, let second = inputs[1].video else {
                        throw FrameHostError(
                            .invalidConfiguration, what: "this stage needs two inputs, but has \(inputs.count)",
                            remedy: "Name two stages: \"from\": [\"a\", \"b\"].")
                    }
                    guard first.width == second.width, first.height == second.height else {
                        throw FrameHostError(
                            .invalidConfiguration,
                            what: "the pictures must have the same size, but are \(first.width)x\(first.height) and \(second.width)x\(second.height)",
                            remedy: "Put a 'crop-orient' with \"size\": \"\(first.width)x\(first.height)\" between the second input and this stage.")
                    }
                    return .video(first)
                }

                /// [stage thread] The frames that belong together, one of each input. Does not allocate.
                public func merge(_ inputs: JoinInputs, _ output: Output) throws {
                    // An input has no frame for this time: it was dropped on its way, or none is near enough.
                    guard case .frame(let first) = inputs.take(0), case .frame(let second) = inputs.take(1) else { return output.drop(.byStage) }
                    guard var result = try output.makeFrame() else { return }
                    let share = Int(options.STAGEOPTION * 256)
                    result.withMutablePlane(0) { target in
                        first.withPlane(0) { a in
                            second.withPlane(0) { b in
                                for y in 0..<target.height {
                                    let (row, a, b) = (target.row(y), a.row(y), b.row(y))
                                    for x in row.indices { row[x] = UInt8((Int(a[x]) * (256 - share) + Int(b[x]) * share) / 256) }
                                }
                            }
                        }
                    }
                    result.copyProperties(from: first)
                    result.pts = inputs.time
                    try output.emit(result)
                }
            }
            """##,
        test: ##"""
                private let format = MediaFormat.video(VideoFormat(.gray8, width: 16, height: 16))

                private func put(_ grey: UInt8, at input: Int, of driver: StageDriver<STAGETYPE>) throws {
                    driver.put(
                        try driver.makeFrame(input: input) { frame in
                            frame.withMutablePlane(0) { plane in
                                for y in 0..<plane.height { plane.row(y).update(repeating: grey) }
                            }
                        }, at: input)
                }

                @Test func givesTheMeanOfTwoPictures() throws {
                    let driver = try StageDriver(STAGETYPE.self, inputs: [format, format])
                    try put(100, at: 0, of: driver)
                    try put(200, at: 1, of: driver)
                    try driver.merge()
                    guard let frame = driver.takeFrame() else {
                        Issue.record("no frame came out")
                        return
                    }
                    let sample = frame.withPlane(0) { $0.row(15)[15] }
                    #expect(sample == 150)
                }

                @Test func givesNothingWhereOneIsMissing() throws {
                    let driver = try StageDriver(STAGETYPE.self, inputs: [format, format])
                    try put(100, at: 0, of: driver)
                    try driver.merge()
                    let isNothing = driver.takeFrame() == nil
                    #expect(isNothing)
                    #expect(driver.dropCount(.byStage) == 1)
                }

                @Test func refusesPicturesOfTwoSizes() {
                    #expect(throws: FrameHostError.self) {
                        try StageDriver(STAGETYPE.self, inputs: [format, .video(VideoFormat(.gray8, width: 32, height: 16))])
                    }
                }
            """##,
        chain: ##"""
                { "id": "bars", "use": "test-source", "size": "640x360", "rate": 30, "frames": 90 },
                { "id": "balls", "use": "test-source", "size": "640x360", "rate": 30, "frames": 90, "pattern": "balls" },
                { "use": "STAGEID", "from": ["bars", "balls"], "STAGEOPTION": 0.5 },
                { "use": "null-sink" }
            """##,
        options: ##"""
            | `STAGEOPTION` | number | 0.5 | 0...1 | yes | How much of the second picture: 0 only the first, 1 only the second. |
            """##)

    // MARK: Sink

    static let sink = StageTemplate(
        option: "darkerThan",
        summary: "measures how bright the pictures are.",
        source: ##"""
            import FrameCore

            /// Measures how bright the pictures are, and says so at the end.
            ///
            /// Takes GRAY8, I420 and NV12; reads the luma plane.
            public final class STAGETYPE: Sink {
                public static let info = StageInfo(
                    id: "STAGEID", summary: "Measures how bright the pictures are.", input: .video(.gray8, .i420, .nv12),
                    events: [
                        EventDeclaration(
                            "dark", "A picture is darker than 'STAGEOPTION'.", [.number("mean", "Its mean, 0...255.")]),
                        EventDeclaration(
                            "brightness", "At the end: how bright the pictures were.",
                            [.number("frames", "How many."), .number("mean", "Their mean, 0...255.")]),
                    ])

                public struct Options: StageOptions {
                    @Option(help: "Posts an event for each picture darker than this.", range: 0...255, live: true) public var STAGEOPTION = 0

                    public init() {}
                }

                public var options: Options
                private let context: StageContext
                private var frames = 0
                private var sum = 0.0

                /// [control thread] Opens nothing; options arrive checked.
                public init(options: Options, context: StageContext) {
                    self.options = options
                    self.context = context
                }

                /// [stage thread] Takes one frame for good. Does not block, and allocates only for an event.
                public func consume(_ input: consuming Sample) throws -> SinkVerdict {
                    guard case .frame(let frame) = consume input else { return .dropped(.byStage) }
                    let mean = frame.withPlane(0) { luma in
                        var sum = 0
                        for y in 0..<luma.height { for sample in luma.row(y) { sum += Int(sample) } }
                        return Double(sum) / Double(luma.height * luma.rowBytes)
                    }
                    frames += 1
                    sum += mean
                    if mean < Double(options.STAGEOPTION) {
                        context.post("dark", text: "The picture is dark.", details: ["mean": .number(mean)])
                    }
                    return .delivered
                }

                /// [stage thread] Runs also when the run failed; a second call says nothing.
                public func stop() {
                    guard frames > 0 else { return }
                    let mean = sum / Double(frames)
                    context.post(
                        "brightness", text: "Mean brightness: \(Int(mean.rounded())) of 255. Pictures: \(frames).",
                        details: ["frames": .number(frames), "mean": .number(mean)])
                    frames = 0
                }
            }
            """##,
        test: ##"""
                @Test func saysTheMeanAtTheEnd() throws {
                    let format = VideoFormat(.gray8, width: 16, height: 16)
                    let driver = try StageDriver(STAGETYPE.self, options: #"{ "STAGEOPTION": 50 }"#, input: .video(format))
                    for grey in [40, 60] as [UInt8] {
                        try driver.send(
                            driver.makeFrame { frame in
                                frame.withMutablePlane(0) { plane in
                                    for y in 0..<plane.height { plane.row(y).update(repeating: grey) }
                                }
                            })
                    }
                    try driver.stop()
                    let events = driver.takeEvents()
                    #expect(events.map(\.name) == ["dark", "brightness"])
                    #expect(events.first?.frame == 0)
                    #expect(events.last?.details["mean"]?.asDouble == 50)
                }
            """##,
        chain: ##"""
                { "use": "test-source", "size": "640x360", "rate": 30, "frames": 90 },
                { "use": "STAGEID", "STAGEOPTION": 16 }
            """##,
        options: ##"""
            | `STAGEOPTION` | integer | 0 | 0...255 | yes | Posts an event for each picture darker than this. |
            """##)
}
