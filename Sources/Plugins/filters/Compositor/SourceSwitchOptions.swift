// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// What a switch does when the input that is shown is lost.
enum WhenLost: String, OptionChoice {
    /// Shows the next input of `from` that gives pictures.
    case next
    /// Goes on with the last picture, or with the source's substitute for it.
    case stay
}

struct SourceSwitchOptions: StageOptions {
    @Option(help: "Id of the input that is shown. Default: the first one in 'from'.", live: true) var active: String? =
        nil
    @Option(
        help: "How long the old and the new input are blended at a switch; 0 is a hard cut.", range: 0...10, unit: "s",
        live: true)
    var fadeSeconds = 0.0
    @Option(help: "What happens when the input shown is lost: next shows another input, stay keeps the last picture.")
    var whenLost = WhenLost.next
    @Option(help: "An input that gives nothing for this long counts as lost.", range: 0.1...3600, unit: "s")
    var lostSeconds =
        2.0
    @Option(help: "Switches back to the chosen input after it has been back for 'backSeconds'.") var goBack = true
    @Option(
        help: "How long the chosen input must give pictures before 'goBack' shows it.", range: 0...3600, unit: "s")
    var backSeconds = 2.0
    @Option(help: "Size of the pictures. Default: the first input's size.", unit: "px") var size: PictureSize? =
        nil
    @Option(
        help: "Pictures per second. Default: the first input's rate.",
        range: FrameRate(1, 1000)...FrameRate(1000)) var rate: FrameRate? = nil
    @Option(
        help:
            "How a picture of another shape gets into 'size': contain adds bars, fill crops it to its middle, stretch distorts it."
    )
    var fit = Fit.contain
    @Option(help: "Colour of the bars, and of the whole picture until the shown input gives its first picture.")
    var color = RGBColor(red: 0, green: 0, blue: 0)
}
