;; Runs for ever before it can be asked anything.
(func $start (loop $again (br $again)))
(start $start)
