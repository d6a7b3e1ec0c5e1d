-- Rotate through the requests in a file, one a line: path, tab, body. Argument: file.
function init(args)
  local headers = {["content-type"] = "application/json"}
  requests = {}
  for line in io.lines(args[1]) do
    local path, body = line:match("^(%S+)\t(.*)$")
    requests[#requests + 1] = wrk.format("POST", path, headers, body)
  end
  at = 0
end

function request()
  at = at % #requests + 1
  return requests[at]
end
