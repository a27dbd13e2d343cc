%% Sends a number for one of a hundred keys, compares the answer with its own sum, and so on until it is killed.
-module(client).
-export([main/0]).

main() ->
    {ok, Socket} = gen_tcp:connect({127, 0, 0, 1}, 7000, [binary, {packet, line}, {active, false}, {nodelay, true}]),
    exchange(Socket, #{}, 0).

exchange(Socket, Sums, Sent) ->
    Key = <<"key", (integer_to_binary(Sent rem 100))/binary>>,
    Number = Sent * 7919 rem 1000003,
    Expected = maps:get(Key, Sums, 0) + Number,
    ok = gen_tcp:send(Socket, [<<"add ">>, Key, $\s, integer_to_binary(Number), $\n]),
    {ok, Answer} = gen_tcp:recv(Socket, 0),
    case <<(integer_to_binary(Expected))/binary, $\n>> of
        Answer ->
            exchange(Socket, Sums#{Key => Expected}, Sent + 1);
        Other ->
            io:format(standard_error, "~s: ~p instead of ~p~n", [Key, Answer, Other]),
            halt(1)
    end.
