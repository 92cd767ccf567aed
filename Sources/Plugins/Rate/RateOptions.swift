import FrameCore

/// Options of ``Rate``.
struct RateOptions: StageOptions {
    @Option(help: "Frames per second to give; required.", range: FrameRate(1, 1000)...FrameRate(100_000)) var rate:
        FrameRate? = nil
    @Option(help: "Fills places without a frame of their own with the frame before; false only drops what is too much.")
    var repeats = true
    @Option(
        help: "Longest gap to fill; a longer one stays, and is said. Without it 2 in live chains, 3600 in others.",
        range: 0.001...1_000_000, unit: "s") var maxGapSeconds: Double? = nil

    func validate() throws(OptionFault) {
        guard rate == nil else { return }
        throw OptionFault("'rate' is missing", remedy: "Name the frames per second: \"rate\": 30, or \"30000/1001\".")
    }
}
