-- Rotate through the bodies in a file, one a line. Arguments: file, path.
function init(args)
  local headers = {["content-type"] = "application/json"}
  requests = {}
  for line in io.lines(args[1]) do
    requests[#requests + 1] = wrk.format("POST", args[2], headers, line)
  end
  at = 0
end

function request()
  at = at % #requests + 1
  return requests[at]
end
