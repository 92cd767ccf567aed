import FrameCore

/// What a switch does when the input that is shown is lost.
enum WhenLost: String, OptionChoice {
    /// Shows the next input of `from` that gives pictures.
    case next
    /// Goes on with the last picture, or with what the source shows in its place.
    case stay
}

struct SourceSwitchOptions: StageOptions {
    @Option(help: "Id of the input that is shown; without it the first of from.", live: true) var active: String? = nil
    @Option(
        help: "How long two pictures are blended when another input is shown; 0 cuts.", range: 0...10, unit: "s",
        live: true)
    var fade = 0.0
    @Option(help: "What is done when the input that is shown is lost: next shows another one, stay its last picture.")
    var whenLost = WhenLost.next
    @Option(help: "An input that gives nothing for so long is lost.", range: 0.1...3600, unit: "s") var lostSeconds =
        2.0
    @Option(help: "Shows the chosen input again once it has been back for backSeconds.") var goBack = true
    @Option(
        help: "How long an input that was lost gives pictures before it is shown again.", range: 0...3600, unit: "s")
    var backSeconds = 2.0
    @Option(help: "Size of the pictures; without it, those of the first input.", unit: "px") var size: PictureSize? =
        nil
    @Option(
        help: "Pictures per second; without it, as many as the first input gives.",
        range: FrameRate(1, 1000)...FrameRate(1000)) var rate: FrameRate? = nil
    @Option(
        help:
            "How a picture of another shape gets into size: contain adds bars, fill cuts its middle out, stretch distorts."
    )
    var fit = Fit.contain
    @Option(help: "Colour of the bars, and before the first picture.") var color = RGBColor(red: 0, green: 0, blue: 0)
}
