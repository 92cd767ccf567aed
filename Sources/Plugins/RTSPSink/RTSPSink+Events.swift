import FrameCore

extension RTSPSink {
    /// What it posts.
    static let events = [
        EventDeclaration(
            "serving", "Readers may join.",
            [
                .list("urls", "Addresses of the stream."),
                .number("port", "Its port."),
                .string("path", "Its path."),
            ]),
        EventDeclaration(
            "client-joined", "A reader plays.",
            [
                .string("path", "The stream."),
                .string("address", "Its address."),
                .string("transport", "How packets travel."),
                .string("user", "Its name, where it has one."),
            ]),
        EventDeclaration(
            "client-left", "A reader plays no more.",
            [
                .string("path", "The stream."),
                .string("why", "Why.", words: ["teardown", "closed", "timeout", "replaced", "stuck", "streamEnded"]),
                .number("seconds", "How long it has played (s)."),
                .string("address", "Its address."),
                .string("transport", "How packets travel."),
                .number("queueMs", "How far it is behind (ms)."),
                .number("droppedUnits", "Pictures that were left out for it."),
                .number("refusedPackets", "Packets that the system refused."),
                .number("packetsLost", "Packets that it reports as lost."),
                .number("lossPercent", "The same of the last interval (%)."),
                .string("user", "Its name, where it has one."),
            ]),
        EventDeclaration(
            "connections-refused", "Connections were refused, for a bound.",
            [
                .number("connections", "How many."),
                .string("why", "Why the last."),
            ]),
        EventDeclaration(
            "login-failed", "Wrong names or passwords.",
            [
                .string("path", "The stream."),
                .number("failures", "How many since the last such event."),
                .number("failuresInAll", "How many in all."),
                .string("address", "From where, where from one."),
            ]),
        EventDeclaration(
            "address-refused", "Addresses that may not play have tried.",
            [
                .string("path", "The stream."),
                .number("failures", "How many since the last such event."),
                .number("failuresInAll", "How many in all."),
                .string("address", "From where, where from one."),
            ]),
        EventDeclaration(
            "group-too-large", "Too much comes from one keyframe to the next to be kept for those who join.",
            [
                .string("path", "The stream."),
                .string("bound", "Which bound.", words: ["seconds", "bytes", "units"]),
            ]),
        EventDeclaration(
            "readers", "Answers the command 'readers'.",
            [
                .string("path", "The stream."),
                .list("readers", "Who plays."),
                .number("refusedConnections", "How many so far."),
                .number("failedLogins", "How many so far."),
                .object("keptGroup", "What is kept since the last keyframe."),
            ]),
    ]
}
