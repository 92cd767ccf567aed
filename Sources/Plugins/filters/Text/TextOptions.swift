// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Lettering
import Shared

struct TextOptions: StageOptions {
    @Option(
        help:
            "The text. Fields: {date}, {time} (both can have a strftime pattern: {time:%H:%M}), {frame}, {pts}, {seconds}, {fps}, {name}, {chain}, {motion.roll}, {motion.pitch} (degrees, after motion-sync). {{ and }} give braces, \\n starts a new line.",
        live: true)
    var text = TextTemplate.dateAndTime
    @Option(help: "Text for {name}. Default: the stage's id.", live: true) var name: String? = nil
    @Option(help: "Shows {date} and {time} in UTC instead of the local time zone.", live: true) var utc = false
    @Option(help: "Position in the upright picture.", live: true) var position = OverlayPosition.bottomLeft
    @Option(
        help:
            "Distance from the edges that 'position' names, in pixels or as a share of width and height (\"3%\"). [x, y] sets two distances.",
        live: true
    )
    var margin = Margin(x: .share(3), y: .share(3))
    @Option(help: "Size of the font, in pixels or as a share of the picture's height.", live: true) var size =
        Extent.share(5)
    @Option(
        help: "Font file (TrueType, OpenType, Type 1). Default: DejaVu Sans, or a similar font that is installed.")
    var font: String? = nil
    @Option(help: "Side on which lines of different lengths are aligned.", live: true) var align =
        TextAlignment.left
    @Option(help: "Colour of the letters.", live: true) var color = RGBColor(red: 255, green: 255, blue: 255)
    @Option(help: "Opacity of letters and outline.", range: 0...1, live: true) var opacity = 1.0
    @Option(help: "Width of the outline around the letters, in pixels or as a share of the font's size.", live: true)
    var outline = Extent.pixels(0)
    @Option(help: "Colour of the outline.", live: true) var outlineColor = RGBColor(red: 0, green: 0, blue: 0)
    @Option(help: "Draws a box behind the text.", live: true) var box = false
    @Option(help: "Colour of the box.", live: true) var boxColor = RGBColor(red: 0, green: 0, blue: 0)
    @Option(help: "Opacity of the box.", range: 0...1, live: true) var boxOpacity = 0.5
    @Option(
        help: "Distance from the text to the edge of the box, in pixels or as a share of the font's size.", live: true)
    var boxPadding = Extent.share(25)

    func validate() throws(OptionFault) {
        for (name, value) in [("size", size), ("outline", outline), ("boxPadding", boxPadding)] where value.isNegative {
            throw OptionFault("'\(name)' must be 0 or more, but is \(value)", remedy: "Use 0 or more.", options: [name])
        }
    }
}
